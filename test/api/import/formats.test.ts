import t from 'tap'
import { formats, guessFormat } from '#api/import/formats.ts'
import {
  chatgptConversation,
  claudeConversation,
  geminiRecords,
  langgraphExport,
  lettaFile,
  mem0Page,
  zepGraph,
} from '#test/support/samples/foreign-exports.ts'
import { readFromWhole, type Line } from '#test/support/samples/import-lines.ts'

const read = readFromWhole
const readValue = (name: string, value: unknown) => read(name, JSON.stringify(value))
const brief = (lines: Line[]) =>
  lines.map(({ role, content, timestamp }) => [role, content, timestamp])

t.test('ChatGPT: the branch that was shown, in its order, with times', async t => {
  const { lines, lost } = await readValue('chatgpt', [
    chatgptConversation(),
    chatgptConversation('c-2', 'x'.repeat(300)),
  ])
  t.same(brief(lines).slice(0, 5), [
    ['user', 'I am a baker in Graz', '2025-02-01T10:00:00.000Z'],
    ['user', 'Be brief', '2025-02-01T10:00:00.001Z'],
    ['user', 'What shall I call my kitten?', '2025-02-01T10:00:01.500Z'],
    ['assistant', 'Ada suits her', '2025-02-01T10:00:09.000Z'],
    ['user', 'Then Ada it is', '2025-02-01T10:00:09.001Z'],
  ])
  t.equal(lines.length, 8, 'custom instructions once')
  t.same(lines[3]!.metadata, {
    source: 'chatgpt',
    conversation: 'c-1',
    title: 'Kitten names',
    model: 'gpt-5',
    origin: 'import',
  })
  t.equal((lines[5]!.metadata!['title'] as string).length, 256)
  t.same(lost, {
    'tool calls, their results and thoughts': 4,
    'images, recordings and files': 2,
    'messages of branches that were edited or regenerated': 2,
    'ends of long metadata texts': 3,
    'references to sources, pictures and widgets': 2,
  })
})

t.test('ChatGPT: words that marks of an answer wrap stay, what has none is counted', async t => {
  const mark = (...fields: string[]) => `\uE200${fields.join('\uE202')}\uE201`
  const answer = [
    `Try ${mark('entity', '["restaurant","Casa Marisol","Porto"]')}`,
    `near ${mark('url', 'the map', 'https://a.example/?q=1')} or ${mark('url', 'the list', 'turn0search1')}.`,
    `\uE203Open daily.\uE204${mark('cite', 'turn0search1', 'turn0news2')}`,
    `${mark('navlist', 'More on Porto', 'turn0news1,turn0news2')}${mark('image_group', '{"query":["x"]}')}`,
  ].join(' ')
  const turn = (role: string) => ({
    message: { author: { role }, content: { content_type: 'text', parts: [answer] } },
  })
  const { lines, lost } = await readValue('chatgpt', { mapping: { a: turn('assistant') } })
  t.equal(
    lines[0]!.content,
    'Try Casa Marisol near [the map](https://a.example/?q=1) or the list. Open daily. More on Porto',
  )
  t.same(lost, { 'references to sources, pictures and widgets': 2 })
  const { lines: asked } = await readValue('chatgpt', { mapping: { a: turn('user') } })
  t.equal(asked[0]!.content, answer, 'what a user typed is no mark')
})

t.test(
  'ChatGPT: both custom instructions, of both forms, and conversations not to be remembered',
  async t => {
    const hidden = (content: object, metadata: object = {}) => ({
      mapping: { a: { message: { author: { role: 'user' }, content, metadata } } },
      is_do_not_remember: true,
    })
    const { lines } = await readValue('chatgpt', [
      hidden({
        content_type: 'user_editable_context',
        user_instructions: 'Run ```npm test``` first',
      }),
      hidden(
        { content_type: 'text', parts: [] },
        {
          user_context_message_data: {
            about_user_message: 'A vet: ```code``` too',
            about_model_message: 'They want:\n```Use metric units```',
          },
        },
      ),
    ])
    t.same(
      lines.map(({ content }) => content),
      ['Run ```npm test``` first', 'A vet: ```code``` too', 'Use metric units'],
    )
    t.match(lines[0]!.metadata, { kind: 'custom_instructions', do_not_remember: true })
  },
)

t.test('ChatGPT: trees that are odd do no harm', async t => {
  const message = (text: string, time: number) => ({
    author: { role: 'user' },
    create_time: time,
    content: { content_type: 'text', parts: [text] },
  })
  const circle = {
    mapping: {
      a: { parent: 'b', children: ['b'], message: message('a', 1_700_000_001) },
      b: { parent: 'a', children: ['a'], message: message('b', 1_700_000_002) },
    },
    current_node: 'b',
  }
  const headless = {
    mapping: {
      r: { parent: null, children: ['x', 'y'], message: null },
      x: { parent: 'r', children: [], message: message('older', 1_700_000_001) },
      y: { parent: 'r', children: [], message: message('newer', 1_700_000_002) },
    },
  }
  const dangling = { ...headless, current_node: 'client-created-root' }
  const { lines, lost } = await readValue('chatgpt', [
    circle,
    headless,
    dangling,
    { mapping: { a: 3, b: [] } },
  ])
  t.same(
    lines.map(({ content }) => content),
    ['a', 'b', 'newer', 'newer'],
  )
  t.same(lost, { 'messages of branches that were edited or regenerated': 2 })
})

t.test('Claude: text blocks, older texts, what Claude remembers', async t => {
  const { lines, lost } = await read(
    'claude',
    JSON.stringify([claudeConversation()]),
    JSON.stringify([{ conversations_memory: 'Bakes bread', project_memories: { p: 'A shop' } }]),
  )
  t.same(brief(lines), [
    ['user', 'Ms Brandt serviced our boiler', '2025-03-01T08:00:00.123Z'],
    ['assistant', 'Noted.', '2025-03-01T08:00:05.000Z'],
    ['user', 'An older message', '2025-03-01T08:01:00.000Z'],
    ['assistant', 'Bakes bread', undefined],
    ['assistant', 'A shop', undefined],
  ])
  t.same(lines[0]!.metadata, {
    source: 'claude',
    conversation: 'cl-1',
    title: 'Boiler',
    origin: 'import',
  })
  t.same(lost, { 'tool calls, their results and thoughts': 2, 'attachments and files': 1 })
})

t.test('Claude: the branch last shown, pasted texts, spoken notes', async t => {
  const root = '00000000-0000-4000-8000-000000000000'
  const message = (uuid: string, parent: string, text: string, rest: object = {}) => ({
    uuid,
    parent_message_uuid: parent,
    sender: 'human',
    content: [{ type: 'text', text }],
    ...rest,
  })
  const edited = [
    message('1', root, 'My sister is called Ilse.'),
    message('2', '1', 'Lovely.'),
    message('3', root, 'My sister is called Elsa, not Ilse.'),
    message('4', '3', 'Thanks, Elsa then.'),
    message('5', 'lost', 'Below a message that is missing.'),
  ]
  const told = (rest: object) => readValue('claude', { chat_messages: edited, ...rest })
  const shown = edited.slice(2).map(({ content }) => content[0]!.text)
  for (const leaf of ['4', undefined, 'gone']) {
    const chat_messages = leaf === '4' ? edited : edited.slice(0, 4)
    const { lines, lost } = await told({ chat_messages, current_leaf_message_uuid: leaf })
    t.same(
      lines.map(({ content }) => content),
      shown.slice(0, chat_messages.length - 2),
    )
    t.same(lost, { 'messages of branches that were edited or regenerated': 2 })
  }
  const first = await told({ current_leaf_message_uuid: '2' })
  t.equal(first.lines[0]!.content, 'My sister is called Ilse.')
  const attachments = [
    { file_name: '', extracted_content: 'A long letter' },
    { file_name: 'book.pdf', extracted_content: 'Chapter 1' },
  ]
  const { lines, lost } = await told({
    chat_messages: [
      message('1', root, '', { attachments }),
      message('2', '1', '', { content: [{ type: 'voice_note', text: 'Spoken' }] }),
      message('3', '2', '', { text: 'Beside an empty block' }),
    ],
  })
  t.same(
    lines.map(({ content }) => content),
    ['A long letter', 'Spoken', 'Beside an empty block'],
  )
  t.same(lost, { 'attachments and files': 1 })
})

t.test('Gemini: the files of Takeout in any language', t => {
  for (const name of [
    'Takeout/My Activity/Gemini Apps/MyActivity.json',
    'Takeout/Meine Aktivitäten/Gemini-Apps/MeineAktivitäten.json',
    'Takeout/Le mie attività/Gemini/LeMieAttività.json',
    'Minha atividade/MinhaAtividade.json',
    'Takeout/マイ アクティビティ/Gemini アプリ/マイアクティビティ.json',
  ]) {
    t.ok(formats['gemini']!.isExportFile(name), name)
  }
  t.notOk(formats['gemini']!.isExportFile('Takeout/YouTube/history.json'))
  t.end()
})

t.test('Gemini: prompts and the words of their answers', async t => {
  const { lines, lost } = await readValue('gemini', geminiRecords())
  t.same(brief(lines), [
    ['user', 'When does the ferry to Naxos leave?', '2025-04-01T09:00:00.500Z'],
    ['assistant', 'It leaves at nine & at five.\nDaily', '2025-04-01T09:00:00.501Z'],
  ])
  t.same(lost, { 'records of other activity than prompts': 2 })
  const record = { header: 'Gemini アプリ', products: ['Gemini'], time: '2025-04-01T09:00:00Z' }
  const japanese = await readValue('gemini', [
    { ...record, title: '船はいつ出ますか' },
    {
      ...record,
      title: 'Prompted Straße?',
      safeHtmlItem: [{ html: 'Stra&szlig;e &Auml;&frac12;' }],
    },
    { ...record, title: 'Prompted', safeHtmlItem: [{ html: 'A red boat.' }] },
  ])
  t.same(japanese.lost, { 'answers that the export lacks': 1, 'prompts without words': 1 })
  t.same(
    japanese.lines.map(({ content }) => content),
    ['船はいつ出ますか', 'Straße?', 'Straße Ä½', 'A red boat.'],
  )
})

t.test('mem0: ids of 64 bits keep their digits, as text', async t => {
  const metadata = '{"guild_id":1234567890123456789,"huge":1e300,"page":9007199254740991}'
  const { lines } = await read('mem0', `[{"memory":"Plays chess","metadata":${metadata}}]`)
  t.match(lines[0]!.metadata, { guild_id: '1234567890123456789', huge: '1e300', page: 2 ** 53 - 1 })
})

t.test('mem0: times as PostgreSQL writes them, and what is no time', async t => {
  const times = [
    '2025-07-24 19:00:00.123-08',
    '2025-07-24 19:00:00 UTC',
    '2026-02-30',
    '07/08/2025',
    '12',
  ]
  const { lines } = await readValue(
    'mem0',
    times.map(time => ({ memory: time, created_at: time })),
  )
  t.same(
    lines.map(({ timestamp }) => timestamp),
    ['2025-07-25T03:00:00.123Z', '2025-07-24T19:00:00.000Z', undefined, undefined, undefined],
  )
})

t.test('mem0: texts, zones, metadata, categories', async t => {
  const { lines, lost } = await readValue('mem0', mem0Page())
  t.same(brief(lines), [['user', 'Lives in Graz', '2025-01-05T08:30:36.275Z']])
  t.same(lines[0]!.metadata, {
    source: 'mem0',
    topic: 'home',
    user_id: 'alex',
    tags: 'personal_details, places',
    origin: 'import',
  })
  t.same(lost, { 'metadata fields with nested values': 1 })
})

t.test('Zep: messages, and facts with their time', async t => {
  const { lines, lost } = await readValue('zep', zepGraph())
  t.same(brief(lines), [
    ['user', 'My bike was stolen', '2025-05-01T10:00:00.000Z'],
    ['assistant', 'Sorry!', '2025-05-01T10:00:01.000Z'],
    ['user', 'Mira owned a red bike (until 2025-05-01)', '2024-01-01T00:00:00.000Z'],
  ])
  t.match(
    lines.map(({ metadata }) => metadata),
    [
      { conversation: 't-1', speaker: 'Mira' },
      { speaker: 'Bot' },
      { kind: 'fact', relation: 'OWNS', invalid_at: '2025-05-01T00:00:00.000Z' },
    ],
  )
  t.same(lost, { 'messages of tools and systems': 1 })
})

t.test('LangGraph: items, and every message of checkpoints once at its first time', async t => {
  const { lines } = await readValue('langgraph', langgraphExport())
  t.same(brief(lines), [
    ['user', 'Prefers tea', '2025-06-01T00:00:00.000Z'],
    ['user', '{"theme":"dark"}', '2025-06-01T00:00:00.000Z'],
    ['user', 'I sail', '2025-06-02T00:00:01.000Z'],
    ['assistant', 'Nice', '2025-06-02T00:00:01.000Z'],
  ])
  t.match(lines[0]!.metadata, { namespace: 'memories/u-1', key: 'k', kind: 'Memory' })
  t.match(lines[2]!.metadata, { conversation: 'th' })
})

t.test('Letta: blocks, and what was said without the events around it', async t => {
  const { lines, lost } = await readValue('letta', lettaFile())
  t.same(brief(lines), [
    ['user', 'Occupation: rower', '2025-07-02T00:00:00.000Z'],
    ['system', 'I am Sam', '2025-07-02T00:00:00.000Z'],
    ['user', 'I row on the Mur', '2025-07-01T00:00:01.000Z'],
    ['assistant', 'Since when?', '2025-07-01T00:00:03.000Z'],
  ])
  t.same(lost, { 'events, thoughts, tool calls and system messages': 2 })
})

t.test('texts and metadata are made to fit; nothing breaks a line', async t => {
  const word = 'wörter '
  const { lines, lost } = await readValue('mem0', [
    { memory: word.repeat(15_000), created_at: '2025-01-01' },
    {
      memory: `a\0b\uD800`,
      metadata: {
        'a b/ü': 1,
        ...Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, n])),
      },
    },
    { memory: ' \n ' },
    { memory: 'over', expiration_date: '2020-01-01' },
    {
      memory: 'odd times',
      expiration_date: '2999-01-01',
      created_at: 'yesterday',
      updated_at: 9e99,
    },
  ])
  t.equal(lines.length, 5)
  t.equal(
    lines
      .slice(0, 3)
      .map(({ content }) => content)
      .join(' '),
    word.repeat(15_000).trim(),
  )
  t.same(
    lines.slice(0, 3).map(({ timestamp }) => timestamp?.slice(-4)),
    ['000Z', '001Z', '002Z'],
  )
  t.equal(lines[3]!.content, 'ab\uFFFD')
  t.equal(Object.keys(lines[3]!.metadata!).length, 16)
  t.equal(lines[3]!.metadata!['a_b__'], 1)
  t.match(lines[4], { timestamp: undefined, expires_at: '2999-01-01T00:00:00.000Z' })
  t.match(lost, {
    'messages without text': 1,
    'memories that have expired': 1,
    'metadata fields beyond 15': 7,
  })
})

t.test('a file of another product is recognized', async t => {
  const samples = {
    chatgpt: chatgptConversation(),
    claude: claudeConversation(),
    gemini: geminiRecords()[0],
    mem0: mem0Page(),
    zep: zepGraph(),
    langgraph: langgraphExport()[0],
    letta: lettaFile(),
  }
  for (const [name, value] of Object.entries(samples)) t.equal(guessFormat(value), name)
  t.equal(guessFormat({ something: 'else' }), undefined)
  const { lines, strangers } = await readValue('chatgpt', [claudeConversation(), 3])
  t.same([lines.length, strangers.length], [0, 2])
})
