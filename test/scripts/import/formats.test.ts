import t from 'tap'
import { Losses } from '#scripts/import/draft.ts'
import { formats, guessFormat } from '#scripts/import/formats.ts'
import {
  chatgptConversation,
  claudeConversation,
  geminiRecords,
  langgraphExport,
  lettaFile,
  mem0Page,
  zepGraph,
} from '#test/support/foreign-exports.ts'

type Line = {
  content: string
  role: string
  timestamp?: string
  metadata?: Record<string, unknown>
}

async function read(name: string, ...texts: string[]) {
  const losses = new Losses()
  const lines: Line[] = []
  const strangers: unknown[] = []
  const files = texts.map((text, index) => ({
    name: `${index}.json`,
    async *open() {
      yield Buffer.from(text)
    },
  }))
  for await (const { text } of formats[name]!.read(files, losses, value => strangers.push(value)))
    lines.push(JSON.parse(text) as Line)
  const lost = Object.fromEntries(losses.list().map(({ what, count }) => [what, count]))
  return { lines, lost, strangers }
}
const readValue = (name: string, value: unknown) => read(name, JSON.stringify(value))
const brief = (lines: Line[]) =>
  lines.map(({ role, content, timestamp }) => [role, content, timestamp])

t.test('ChatGPT: the branch that was shown, in its order, with times', async t => {
  const { lines, lost } = await readValue('chatgpt', [
    chatgptConversation(),
    chatgptConversation('c-2', 'x'.repeat(300)),
  ])
  t.same(brief(lines).slice(0, 4), [
    ['user', 'I am a baker in Graz', '2025-02-01T10:00:00.000Z'],
    ['user', 'What shall I call my kitten?', '2025-02-01T10:00:01.500Z'],
    ['assistant', 'Ada suits her', '2025-02-01T10:00:09.000Z'],
    ['user', 'Then Ada it is', '2025-02-01T10:00:09.001Z'],
  ])
  t.equal(lines.length, 7, 'custom instructions once')
  t.same(lines[2]!.metadata, {
    source: 'chatgpt',
    conversation: 'c-1',
    title: 'Kitten names',
    model: 'gpt-5',
  })
  t.equal((lines[4]!.metadata!['title'] as string).length, 256)
  t.same(lost, {
    'tool calls, their results and thoughts': 4,
    'images, recordings and files': 2,
    'messages of branches that were edited or regenerated': 2,
    'ends of long metadata texts': 3,
  })
})

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
  const { lines } = await readValue('chatgpt', [circle, headless, { mapping: { a: 3, b: [] } }])
  t.same(
    lines.map(({ content }) => content),
    ['a', 'b', 'newer'],
  )
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
  t.same(lines[0]!.metadata, { source: 'claude', conversation: 'cl-1', title: 'Boiler' })
  t.same(lost, { 'tool calls, their results and thoughts': 2, 'attachments and files': 1 })
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
    'metadata fields beyond 16': 6,
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
