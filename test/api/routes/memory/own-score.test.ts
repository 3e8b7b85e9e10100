import { readFileSync } from 'node:fs'
import t from 'tap'
import { buildKey } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

/** A score is that of the row itself: what stands around a match is told with it, and is none. */

const { backend, newClient } = await startService(t)

type Exchange = [said: string, answered: string, queries: string[]]
/** Each about something else, with queries whose words it has. */
const exchanges = JSON.parse(
  readFileSync(
    new URL('../../../support/samples/unrelated-exchanges.json', import.meta.url),
    'utf8',
  ),
) as Exchange[]

type Row = { id: string; content: string; score: number; why: string[]; copies?: number }
type Client = Awaited<ReturnType<typeof newClient>>

const ways: Record<string, (client: Client, gap: number) => Promise<void>> = {
  async upload(client, gap) {
    const turns = exchanges.flatMap(([said, answered]) => [said, answered])
    const lines = turns.map((content, n) =>
      JSON.stringify({ role: n % 2 ? 'assistant' : 'user', content, timestamp: timeOf(n, gap) }),
    )
    t.equal((await client.post('/v1/memory/upload', lines.join('\n'))).status, 200)
  },
  async ingest(client, gap) {
    for (const [n, [said, answered]] of exchanges.entries()) {
      const messages = [
        { role: 'user', content: said, timestamp: timeOf(2 * n, gap) },
        { role: 'assistant', content: answered, timestamp: timeOf(2 * n + 1, gap) },
      ]
      const wait = n === exchanges.length - 1 ? '?wait=true' : ''
      await client.post(`/v1/memory/ingest${wait}`, { messages })
    }
    const all = 2 * exchanges.length
    for (let stored = 0; stored < all;) {
      const { body } = await client.get('/v1/memory/list?limit=1')
      stored = body.total ?? body.tier_counts.raw
    }
  },
}
const start = Date.parse('2026-03-02T08:00:00Z')
const timeOf = (turn: number, gap: number): number => start + turn * gap

for (const [way, store] of Object.entries(ways)) {
  for (const [number, gap] of [1_000, 60_000, 3_600_000].entries()) {
    t.test(`${way}, turns ${gap / 1000} s apart: nothing foreign is copied`, async t => {
      const client = await newClient()
      await store(client, gap)
      const destination_key = await buildKey(backend)
      const asked = exchanges.flatMap(([said, answered, queries]) =>
        queries.map(query => ({ query, own: [said, answered] })),
      )
      const turn = way === 'upload' ? number : number + 3
      for (const { query, own } of asked.filter((_, n) => n % 3 === turn % 3)) {
        const body = { destination_key, queries: [query], dry_run: true, threshold: 0.5 }
        const preview = await client.post('/v1/memory/graft', body)
        const rows = preview.body.memories as { snippet: string; score: number }[]
        const foreign = rows.filter(
          ({ snippet }) => !own.some(text => text.startsWith(snippet.slice(0, 40))),
        )
        t.same(foreign, [], `${query}: no foreign row at 0.5, and so at 0.6 and 0.65`)
        const named = own.filter(text => hasAllWords(text, query))
        const strict = rows.filter(({ score }) => score >= 0.65).map(({ snippet }) => snippet)
        for (const text of named)
          t.ok(
            strict.some(snippet => text.startsWith(snippet.slice(0, 40))),
            `${query}: ${text}`,
          )
      }
    })
  }
}

function hasAllWords(text: string, query: string): boolean {
  const words: string[] = text.toLowerCase().match(/\w+/g) ?? []
  return query
    .toLowerCase()
    .match(/\w+/g)!
    .every(word => words.includes(word))
}

t.test(
  'what stands beside a match has less than 0.5, follows it and counts for no threshold',
  async t => {
    const client = await newClient()
    await ways.upload!(client, 1_000)
    const search = async (more: object = {}): Promise<Row[]> => {
      const { body } = await client.post('/v1/memory/search', {
        query: 'dough of rye bread',
        limit: 20,
        ...more,
      })
      return body.memories
    }
    const rows = await search()
    const around = rows.filter(({ why }) => why.includes('context'))
    t.ok(around.length > 0)
    for (const row of around) {
      t.same(row.why, ['context'])
      t.ok(row.score < 0.5, row.content)
      t.ok(rows[0]!.score > row.score)
    }
    const scores = rows.map(({ score }) => score)
    t.same(
      scores,
      scores.toSorted((a, b) => b - a),
    )
    t.same(
      (await search({ min_relevance: 0.0001 })).map(({ id }) => id),
      rows.filter(row => !around.includes(row)).map(({ id }) => id),
    )
    const { body } = await client.post('/v1/memory/search', {
      query: 'dough of rye bread',
      limit: 1,
    })
    t.equal(body.matchingMemories, rows.length - around.length)
  },
)

t.test('equal texts are one row that says how many there are', async t => {
  const client = await newClient()
  const text = 'The boat is called Albatross.'
  const ids = await insertMemories(backend, client.key, [
    { text, at: start },
    { text, at: start + 1_000_000, metadata: { place: 'harbour' } },
    { text, at: start + 2_000_000 },
    { text: 'The boat needs new paint.', at: start + 9_000_000 },
  ])
  const search = async (more: object = {}) =>
    (await client.post('/v1/memory/search', { query: 'Albatross', limit: 5, ...more })).body
  const { memories, matchingMemories } = await search()
  t.match(memories[0], { id: ids[2], content: text, copies: 3 })
  t.equal(matchingMemories, 3)
  t.notOk('copies' in (await search({ query: 'paint' })).memories[0])
  t.notOk('copies' in (await search({ metadata: { place: 'harbour' } })).memories[0])
  t.equal((await search({ as_of: start + 1_500_000 })).memories[0].copies, 2)
})

t.test('where a search has 0.5 and up and a block has nothing, it says why', async t => {
  const client = await newClient()
  await insertMemories(backend, client.key, [
    { text: 'Which strings suit an acoustic guitar for fingerstyle?', at: start },
    {
      text: 'Light phosphor bronze strings are easy on the fingers.',
      at: start + 1,
      role: 'assistant',
    },
    // Words that most texts have rule a question out before anything is ranked.
    ...['a spade', 'my aunt', 'roses', 'the hose', 'seeds', 'gravel'].map((tool, day) => ({
      text: `I work in the garden on day ${day}, with ${tool}.`,
      at: start + (day + 1) * 9_000_000,
    })),
  ])
  const reasons: unknown[] = []
  for (const query of [
    'Which guitar strings should I buy?',
    'Remind me which guitar strings we talked about',
    'What strings suit my guitar?',
    'Which pharaoh built the pyramid?',
    'Write a poem about the garden',
    'Tell me a joke about gravel gardens',
    'What is a garden for?',
    'How do people work in the garden?',
  ]) {
    const found = await client.post('/v1/memory/search', { query, limit: 5, min_relevance: 0.5 })
    const messages = [{ role: 'user', content: query }]
    const { body } = await client.post('/v1/memory/prepare', { messages })
    const reason = found.body.totalMemories > 0 ? 'no_answer' : 'nothing_relevant'
    t.equal(body.abstained, body.context === null ? reason : null, query)
    reasons.push(body.abstained)
  }
  for (const reason of ['no_answer', 'nothing_relevant', null]) t.ok(reasons.includes(reason))
})
