import t from 'tap'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

/** What a row was ranked by is told, and can be asked for. */

const { backend, newClient } = await startService(t, { jobs: [] })
const { key, ...api } = await newClient()
await insertMemories(backend, key, [
  { text: 'We spend our holiday in Hallstatt, in the house by the lake.' },
  { text: 'The invoice INV-20431 was paid in April.' },
  { text: 'Our boiler makes a knocking noise at night.' },
  { text: 'Bread, milk, two lemons and a packet of rice.' },
])

type Row = {
  id: string
  content: string
  score: number
  relevance: number
  similarity: number
  why: string[]
}
async function search(query: string, more: object = {}): Promise<Row[]> {
  const { status, body } = await api.post('/v1/memory/search', { query, limit: 10, ...more })
  t.equal(status, 200)
  return body.memories
}

t.test('the first row of an answer has a score, a relevance and what it was found by', async t => {
  for (const [query, word] of [
    ['When is our holiday in Hallstatt?', 'Hallstatt'],
    ['INV-20431', 'INV-20431'],
    ['Hallstatt', 'Hallstatt'],
    ['Which noise does the boiler make?', 'boiler'],
  ] as const) {
    const [first, ...others] = await search(query)
    t.match(first!.content, word)
    t.ok(first!.score > 0, `${query}: score ${first!.score}`)
    t.ok(first!.relevance >= 0.5, `${query}: relevance ${first!.relevance}`)
    t.ok(first!.why.includes('words'), query)
    t.ok(
      others.every(({ relevance }) => relevance <= first!.relevance),
      'in order',
    )
  }
})

t.test('min_relevance bounds a search and a block', async t => {
  const query = 'When is our holiday in Hallstatt, and was the invoice paid?'
  const all = await search(query)
  const bound = all.at(-1)!.relevance + 0.01
  t.equal((await search(query, { min_relevance: bound })).length < all.length, true)
  t.same(await search(query, { min_relevance: 1 }), [])
  const messages = [{ role: 'user', content: query }]
  const { body } = await api.post('/v1/memory/prepare', { messages, min_relevance: 1 })
  t.match(body, { context: null, abstained: 'nothing_relevant', confidence: 0 })
})

t.test('each line of a block has the relevance and the reasons of a search', async t => {
  const query = 'When is our holiday in Hallstatt, and was the invoice paid?'
  const rows = await search(query)
  const prepare = async (more: object = {}) =>
    (
      await api.post('/v1/memory/prepare', {
        messages: [{ role: 'user', content: query }],
        ...more,
      })
    ).body
  const { context, memories, memories_found: count } = await prepare()
  const told = memories.map(({ memory_id: id }: { memory_id: string }) =>
    rows.find(row => row.id === id),
  )
  t.equal(memories.length, count)
  t.ok(count >= 2, `${count} lines`)
  t.same(
    context
      .split('\n')
      .slice(1, -2)
      .map((line: string) => line.replace(/^\[.*?\] /, '')),
    told.map((row?: Row) => row?.content),
    'in the order of the lines',
  )
  t.same(
    memories,
    told.map((row?: Row) => ({
      memory_id: row?.id,
      origin: 'person',
      score: row?.score,
      relevance: row?.score,
      similarity: row?.similarity,
      why: row?.why,
    })),
  )
  t.same((await prepare({ min_relevance: 1 })).memories, [], 'of no block there is no line')
})

t.test('a block tells how likely it answers, and no block why there is none', async t => {
  const prepare = async (content: string) =>
    (await api.post('/v1/memory/prepare', { messages: [{ role: 'user', content }] })).body
  const sure = await prepare('When is our holiday in Hallstatt?')
  t.ok(sure.confidence > 0.5 && sure.confidence <= 1, `${sure.confidence}`)
  t.equal(sure.abstained, null)
  t.match(await prepare('Thanks a lot!'), { abstained: 'asks_nothing', confidence: 0 })
  t.match(await prepare('Which pharaoh built the pyramid?'), { abstained: 'nothing_relevant' })
  const wanted = { context: null, abstained: 'nothing_then', confidence: 0 }
  t.match(await prepare('Which noise did the boiler make two years ago?'), {
    abstained: null,
    context: /knocking/,
  })
  t.match(await prepare('What did we buy two years ago?'), wanted)
})
