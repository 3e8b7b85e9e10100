import t from 'tap'
import { Losses } from '#api/import/draft.ts'
import type { ExportFile } from '#api/import/export-files.ts'
import { formats, guessFormat } from '#api/import/formats.ts'
import { openExport, surveyExport } from '#api/import/survey.ts'
import { readFromWhole, type Line } from '#test/support/samples/import-lines.ts'

const read = (name: string, value: unknown) => readFromWhole(name, JSON.stringify(value))
const brief = (lines: Line[]) =>
  lines.map(({ role, content, timestamp }) => [role, content, timestamp])

const message = (
  id: string,
  parentId: string | null,
  role: string,
  content: unknown,
  n: number,
) => ({
  id,
  parentId,
  role,
  content,
  timestamp: 1_790_000_000 + n,
  ...(role === 'assistant' && { model: 'gpt-5' }),
})

const openWebuiChat = {
  id: 'c-1',
  user_id: 'u-1',
  title: 'A boat',
  chat: {
    title: 'A boat',
    models: ['gpt-5'],
    history: {
      currentId: 'm4',
      messages: {
        m1: message('m1', null, 'user', 'My boat is red.', 1),
        m2: message('m2', 'm1', 'assistant', 'Blue, then.', 2),
        m3: message('m3', 'm1', 'assistant', 'Red it is.', 3),
        m4: message('m4', 'm3', 'user', [{ type: 'text', text: 'And it leaks.' }], 4),
      },
    },
  },
  created_at: 1_790_000_000,
}

t.test('Open WebUI: the branch that is shown, with times', async t => {
  const { lines, lost, strangers } = await read('open-webui', [openWebuiChat])
  t.same(strangers, [])
  t.same(brief(lines), [
    ['user', 'My boat is red.', '2026-09-21T14:13:21.000Z'],
    ['assistant', 'Red it is.', '2026-09-21T14:13:23.000Z'],
    ['user', 'And it leaks.', '2026-09-21T14:13:24.000Z'],
  ])
  t.match(lines[1]!.metadata, { source: 'open-webui', title: 'A boat', model: 'gpt-5' })
  t.same(lost, { 'messages of branches that were edited or regenerated': 1 })
  t.equal(guessFormat(openWebuiChat), 'open-webui')
})

const said = (id: string, parent: string, isCreatedByUser: boolean, text: string, n: number) => ({
  messageId: id,
  parentMessageId: parent,
  isCreatedByUser,
  sender: isCreatedByUser ? 'User' : 'GPT',
  ...(isCreatedByUser ? { text } : { text: '', content: [{ type: 'text', text }] }),
  createdAt: `2026-11-2${n}T10:00:00.000Z`,
})
const libreChat = {
  conversationId: 'c-2',
  endpoint: 'openAI',
  title: 'A ferry',
  exportAt: '10:00:00 GMT',
  branches: true,
  recursive: true,
  messages: [
    {
      ...said('a', '00000000-0000-0000-0000-000000000000', true, 'When leaves the ferry?', 1),
      children: [
        { ...said('b', 'a', false, 'At eight.', 2), children: [] },
        { ...said('c', 'a', false, 'At nine.', 3), children: [] },
      ],
    },
  ],
}

t.test('LibreChat: a tree of messages or a list, the newest branch', async t => {
  const flat = {
    ...libreChat,
    recursive: false,
    messages: [libreChat.messages[0]!, ...libreChat.messages[0]!.children].map(one => ({
      ...one,
      children: undefined,
    })),
  }
  for (const value of [libreChat, flat]) {
    const { lines, lost } = await read('librechat', value)
    t.same(brief(lines), [
      ['user', 'When leaves the ferry?', '2026-11-21T10:00:00.000Z'],
      ['assistant', 'At nine.', '2026-11-23T10:00:00.000Z'],
    ])
    t.same(lost, { 'messages of branches that were edited or regenerated': 1 })
    t.equal(guessFormat(value), 'librechat')
  }
})

const serialized = (kind: string, kwargs: object) => ({
  lc: 1,
  type: 'constructor',
  id: ['langchain', 'schema', 'messages', kind],
  kwargs,
})

t.test('LangChain: messages as its functions and its histories write them', async t => {
  const dict = (type: string, content: unknown) => ({ type, data: { type, content } })
  const row = { id: 1, session_id: 's-1', message: dict('human', 'My hat is blue.') }
  const values = [
    dict('human', 'My boat is red.'),
    dict('ai', [{ type: 'text', text: 'Red.' }]),
    dict('system', 'Be terse.'),
    dict('tool', 'sunny'),
    serialized('HumanMessage', { content: 'My cat is Ada.' }),
    serialized('AIMessage', { content: 'Ada.' }),
    { ...row, created_at: '2026-11-20T10:00:00Z' },
    { ...row, message: JSON.stringify(dict('ai', 'Blue.')) },
  ]
  const { lines, lost, strangers } = await read('langchain', values)
  t.same(strangers, [])
  t.same(brief(lines), [
    ['user', 'My boat is red.', undefined],
    ['assistant', 'Red.', undefined],
    ['user', 'My cat is Ada.', undefined],
    ['assistant', 'Ada.', undefined],
    ['user', 'My hat is blue.', '2026-11-20T10:00:00.000Z'],
    ['assistant', 'Blue.', undefined],
  ])
  t.match(lines[4]!.metadata, { conversation: 's-1' })
  t.same(lost, { 'messages of tools and systems, and those without text': 2 })
  for (const value of values) t.equal(guessFormat(value), 'langchain')
})

t.test('mem0: fields as its client for TypeScript names them', async t => {
  const { lines } = await read('mem0', {
    results: [
      {
        id: '1',
        memory: 'Sails.',
        createdAt: '2025-05-01T12:00:00Z',
        updatedAt: '2025-05-02T12:00:00Z',
        userId: 'ada',
        agentId: 'planner',
        runId: 'r-1',
      },
    ],
  })
  t.match(lines, [
    {
      timestamp: '2025-05-01T12:00:00.000Z',
      metadata: { user_id: 'ada', agent_id: 'planner', run_id: 'r-1' },
    },
  ])
})

t.test('ChatGPT and Claude: marks and thoughts of older exports are no words', async t => {
  const part = (id: string, parent: string | null, role: string, text: string) => ({
    id,
    parent,
    message: {
      id,
      author: { role },
      create_time: 1_700_000_000,
      content: { content_type: 'text', parts: [text] },
    },
  })
  const chatgpt = await read('chatgpt', [
    {
      mapping: {
        a: part('a', null, 'user', 'What does 【my note】 say?'),
        b: part('b', 'a', 'assistant', 'The rent is 900【4:0†lease.pdf】 a month【12†source】.'),
      },
      current_node: 'b',
    },
  ])
  t.same(
    chatgpt.lines.map(({ content }) => content),
    ['What does 【my note】 say?', 'The rent is 900 a month.'],
  )
  const text =
    '<antThinking>A list is enough.</antThinking>Here it is: <antArtifact identifier="x">a\n</antArtifact> done.'
  const claude = await read('claude', [
    {
      uuid: 'c',
      chat_messages: [
        { uuid: '1', sender: 'human', text: 'What is <antThinking>x</antThinking>?' },
        { uuid: '2', sender: 'assistant', text, created_at: '2024-08-01T10:00:00Z' },
      ],
    },
  ])
  t.same(
    claude.lines.map(({ content }) => content),
    ['What is <antThinking>x</antThinking>?', 'Here it is: done.'],
  )
})

t.test('files that a folder holds and no format reads are counted', async t => {
  const file = (name: string, text: string): ExportFile => ({
    name,
    async *open() {
      yield Buffer.from(text)
    },
  })
  const files = [
    file('chats.json', JSON.stringify([openWebuiChat])),
    file('a.png', ''),
    file('sub/b.PNG', ''),
    file('LICENSE', ''),
  ]
  const opened = openExport(formats['open-webui']!, files, 'folder')
  const { losses } = await surveyExport(opened, { hintFor: () => undefined, onLine: () => {} })
  t.same(
    losses.filter(({ what }) => what.startsWith('files')),
    [
      { what: 'files that are not read: .png', count: 2 },
      { what: 'files that are not read: LICENSE', count: 1 },
    ],
  )
  t.same(new Losses().list(), [])
})
