import t from 'tap'
import { insertMemories, type MemoryFixture } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

/** The newer of two statements that contradict each other stands first, the older is marked; nothing is hidden. */

const { backend, newClient } = await startService(t)

const start = Date.parse('2026-03-02T08:00:00Z')
const day = 86_400_000
type Row = {
  id: string
  content: string
  score: number
  superseded_by?: string
  supersedes?: string[]
}

async function vaultWith(...memories: MemoryFixture[]) {
  const client = await newClient()
  const ids = await insertMemories(backend, client.key, memories)
  const search = async (query: string, more: object = {}): Promise<Row[]> => {
    const { status, body } = await client.post('/v1/memory/search', { query, limit: 5, ...more })
    t.equal(status, 200)
    return body.memories
  }
  return { client, ids, search }
}
const port = (value: number, at: number) => ({ text: `My port is ${value}.`, at })

t.test('the newer is above the older, which names it, whatever came in first', async t => {
  for (const memories of [
    [port(5544, start), port(5545, start + day)],
    [port(5545, start + day), port(5544, start)],
  ]) {
    const { search } = await vaultWith(...memories)
    const [first, second] = await search('Which port do I use?')
    t.match(first, { content: 'My port is 5545.', supersedes: [second!.id] })
    t.match(second, { content: 'My port is 5544.', superseded_by: first!.id })
    t.notOk('superseded_by' in first! || 'supersedes' in second!)
    t.ok(first!.score >= second!.score)
  }
})

t.test('of three the newest supersedes both', async t => {
  const { ids, search } = await vaultWith(
    port(1, start),
    port(2, start + day),
    port(3, start + 2 * day),
  )
  const rows = await search('Which port do I use?')
  t.same(
    rows.map(({ id }) => id),
    [ids[2], ids[1], ids[0]],
  )
  t.same(
    rows.map(row => row.superseded_by),
    [undefined, ids[2], ids[2]],
  )
})

t.test('without the newer the older holds: deleted, edited, or not known then', async t => {
  const { client, ids, search } = await vaultWith(port(5544, start), port(5545, start + day))
  const [then] = await search('Which port do I use?', { as_of: start + 1000 })
  t.equal(then!.id, ids[0])
  t.notOk('superseded_by' in then!)
  const edit = { memory_id: ids[1], text: 'The harbour opens at six.' }
  t.equal((await client.post('/v1/memory/edit', edit)).status, 200)
  t.notOk((await search('Which port do I use?')).some(row => 'superseded_by' in row))
  t.equal((await client.post('/v1/memory/edit', { ...edit, text: 'My port is 5546.' })).status, 200)
  t.equal((await search('Which port do I use?'))[1]!.superseded_by, ids[1])
  t.equal((await client.post('/v1/memory/delete-ids', { ids: [ids[1]] })).status, 200)
  const [left] = await search('Which port do I use?')
  t.equal(left!.id, ids[0])
  t.notOk('superseded_by' in left!)
})

t.test('a question about the past tells the older first', async t => {
  const { ids, search } = await vaultWith(
    { text: 'I live in Berlin.', at: start },
    { text: 'I moved to Lisbon.', at: start + 30 * day },
  )
  t.equal((await search('Where do I live?'))[0]!.id, ids[1])
  t.equal((await search('Where did I live before?'))[0]!.id, ids[0])
})

t.test('of one time, of two people, or true together: nothing is superseded', async t => {
  for (const [question, ...memories] of [
    ['Which port do I use?', port(5544, start), port(5545, start)],
    [
      'What is my locker number?',
      { text: 'My locker number is 12.', at: start, speaker: 'Ada' },
      { text: 'My locker number is 31.', at: start + day, speaker: 'Ben' },
    ],
    [
      'Who lives in Rome?',
      ...['My sister lives in Rome.', 'My brother lives in Rome.'].map((text, n) => ({
        text,
        at: start + n * day,
      })),
    ],
    [
      'Which ports are used?',
      ...['The port of staging is 1.', 'The port of production is 2.'].map((text, n) => ({
        text,
        at: start + n * day,
      })),
    ],
    [
      'What do I like?',
      ...['I like jazz.', 'I like techno.'].map((text, n) => ({ text, at: start + n * day })),
    ],
    [
      'Which port do I use?',
      port(5544, start),
      { ...port(5545, start + day), role: 'assistant' as const },
    ],
  ] as [string, ...MemoryFixture[]][]) {
    const { search } = await vaultWith(...memories)
    const rows = await search(question)
    t.notOk(
      rows.some(row => 'superseded_by' in row),
      question,
    )
  }
})

t.test('a block tells the newer and marks the older as earlier', async t => {
  const { client, ids } = await vaultWith(
    { text: 'The code of the garage is 1912.', at: start },
    { text: 'The code of the garage is 8830.', at: start + day },
  )
  const messages = [{ role: 'user', content: 'What is the code of the garage?' }]
  const { body } = await client.post('/v1/memory/prepare', { messages })
  const lines = (body.context as string).split('\n')
  t.match(
    lines.find(line => line.includes('1912')),
    / · user, earlier\] /,
  )
  t.notMatch(
    lines.find(line => line.includes('8830')),
    /earlier/,
  )
  const line = body.memories.find((row: { memory_id: string }) => row.memory_id === ids[0])
  t.equal(line.superseded_by, ids[1])
})

t.test(
  'words of a model stand below those of the person, unless the question asks for them',
  async t => {
    const own = { text: 'My knee hurts.', at: start }
    const advice = {
      text: 'The wall sit is good for a knee: three times a day, half a minute each.',
      role: 'assistant' as const,
      at: start + day,
    }
    const { search } = await vaultWith(own, advice)
    const firstOf = async (query: string) => (await search(query))[0]!.content
    t.equal(await firstOf('What is wrong with my knee?'), own.text)
    t.equal(await firstOf('Which exercise did you suggest for my knee?'), advice.text)
  },
)
