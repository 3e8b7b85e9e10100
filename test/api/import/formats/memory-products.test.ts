import t from 'tap'
import { guessFormat } from '#api/import/formats.ts'
import { readFromWhole } from '#test/support/samples/import-lines.ts'

const read = (name: string, ...values: unknown[]) =>
  readFromWhole(name, values.map(value => JSON.stringify(value)).join('\n'))

const document4 = {
  id: 'd1',
  customId: 'chat-7',
  connectionId: null,
  title: 'The bicycle',
  type: 'text',
  status: 'done',
  summary: 'About a bicycle.',
  content: 'My bicycle is green.',
  containerTags: ['ada', 'home'],
  metadata: { mood: 'glad' },
  url: null,
  createdAt: '2025-05-01T10:00:00.000Z',
  updatedAt: '2025-06-01T10:00:00.000Z',
}
const pagination = { currentPage: 1, totalItems: 2, totalPages: 1 }
const memory5 = (id: string, memory: string, more: object = {}) => ({
  id,
  memory,
  metadata: {},
  isStatic: false,
  isInference: false,
  isLatest: true,
  isForgotten: false,
  version: 1,
  system: { createdAt: '2026-10-08T10:00:00Z', updatedAt: '2026-10-08T10:00:00Z' },
  ...more,
})

t.test('supermemory: documents of version 4', async t => {
  const page = { memories: [document4, { ...document4, id: 'd2', content: undefined }], pagination }
  const { lines, lost, strangers } = await read('supermemory', page)
  t.same(strangers, [])
  t.same(lost, { 'documents that were listed without their content': 1 })
  t.same(lines, [
    {
      content: 'My bicycle is green.',
      role: 'user',
      timestamp: '2025-05-01T10:00:00.000Z',
      metadata: {
        source: 'supermemory',
        kind: 'document',
        document: 'chat-7',
        title: 'The bicycle',
        type: 'text',
        tags: 'ada, home',
        mood: 'glad',
        origin: 'import',
      },
    },
  ])
  t.equal(guessFormat(page), 'supermemory')
})

t.test('supermemory: memories of version 5, and what they were made of', async t => {
  const listed = {
    documents: [],
    chunks: [],
    memories: [
      memory5('m1', 'Ada rows.'),
      memory5('m2', 'Ada may own a boat.', { isInference: true }),
      memory5('m3', 'Ada ran.', { isLatest: false }),
      memory5('m4', 'Ada smoked.', { isForgotten: true }),
    ],
    pagination,
  }
  const python = {
    id: 'd3',
    title: null,
    type: 'text',
    summary: null,
    content: 'I row on Sundays.',
    metadata: {},
    system: { status: 'done', created_at: '2026-10-07T09:00:00Z' },
    memories: [
      {
        id: 'm5',
        memory: 'Ada rows on Sundays.',
        is_latest: true,
        system: { created_at: '2026-10-07T09:01:00Z' },
      },
    ],
  }
  const { lines, lost } = await read('supermemory', listed, python)
  t.same(
    lines.map(({ content, timestamp, metadata }) => [content, timestamp, metadata!.kind]),
    [
      ['Ada rows.', '2026-10-08T10:00:00.000Z', 'memory'],
      ['Ada may own a boat.', '2026-10-08T10:00:00.000Z', 'inference'],
      ['I row on Sundays.', '2026-10-07T09:00:00.000Z', 'document'],
      ['Ada rows on Sundays.', '2026-10-07T09:01:00.000Z', 'memory'],
    ],
  )
  t.same(lost, { 'memories that a newer version replaced': 1, 'memories that were forgotten': 1 })
  t.equal(guessFormat(listed), 'supermemory')
  t.equal(guessFormat(python), 'supermemory')
})

const peer = (id: string, configuration: object = {}) => ({
  id,
  workspace_id: 'w',
  created_at: '2026-01-01T00:00:00Z',
  metadata: {},
  configuration,
})
const said = (peer_id: string, content: string) => ({
  id: `m-${content.length}`,
  peer_id,
  session_id: 's-1',
  workspace_id: 'w',
  content,
  metadata: { channel: 'web' },
  created_at: '2026-02-01T10:00:00.123456Z',
  token_count: 5,
})
const conclusion = (observed_id: string, content: string) => ({
  id: `c-${content.length}`,
  observer_id: 'helper',
  observed_id,
  session_id: 's-1',
  level: 'deductive',
  source_ids: ['c-0'],
  times_derived: 1,
  content,
  created_at: '2026-02-01T11:00:00Z',
})
const page = (items: unknown[]) => ({ items, total: items.length, page: 1, size: 50, pages: 1 })

t.test('Honcho: messages of a person and of others, and conclusions about the person', async t => {
  const { lines, lost, strangers } = await read(
    'honcho',
    peer('ada'),
    page([said('ada', 'My lamp is broken.'), said('helper', 'Shall I order one?')]),
    page([conclusion('ada', 'Ada needs a lamp.'), conclusion('ben', 'Ben has lamps.')]),
  )
  t.same(strangers, [])
  t.same(lost, { 'conclusions about other peers': 1 })
  t.match(lines, [
    {
      content: 'My lamp is broken.',
      role: 'user',
      timestamp: '2026-02-01T10:00:00.123Z',
      metadata: { source: 'honcho', speaker: 'ada', conversation: 's-1', channel: 'web' },
    },
    { content: 'Shall I order one?', role: 'assistant', metadata: { speaker: 'helper' } },
    {
      content: 'Ada needs a lamp.',
      role: 'user',
      metadata: { kind: 'conclusion', level: 'deductive', speaker: 'helper', about: 'ada' },
    },
  ])
})

t.test(
  'Honcho: peers that are not observed are assistants; without peers the one of that name',
  async t => {
    const rolesOf = async (...values: unknown[]) =>
      (await read('honcho', ...values)).lines.map(({ role }) => role)
    const talk = page([said('ada', 'a'), said('ben', 'bb'), said('assistant', 'ccc')])
    const peers = page([peer('ada'), peer('ben'), peer('assistant', { observe_me: false })])
    t.same(await rolesOf(peers, talk), ['user', 'user', 'assistant'])
    t.same(await rolesOf(talk), ['user', 'user', 'assistant'])
    t.equal(guessFormat(talk), 'honcho')
    t.equal(guessFormat(page([conclusion('ada', 'x')])), 'honcho')
    t.equal(guessFormat(peers), 'honcho')
  },
)
