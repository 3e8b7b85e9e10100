import t from 'tap'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { readBill, readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const env = { OLLAMA_BASE_URL: provider.baseUrl }
const { backend, base } = await startService(t, { env })
const as = (key: string) => createTestClient(base, key)
const graft = (source: string, destination_key: string, body: object = {}, headers = {}) =>
  as(source).post(
    '/v1/memory/graft',
    { destination_key, queries: ['the kitten from the shelter'], ...body },
    headers,
  )

const mask = (key: string): string => `${key.slice(0, 6)}…${key.slice(-4)}`
const textsOf = async (key: string) => (await readDocuments(backend, key)).map(({ text }) => text)

const told = [
  'We adopted a grey kitten from the shelter',
  'The kitten from the shelter sleeps all day',
  'The dentist appointment is on Thursday at nine',
  'The car needs new winter tyres before November',
  'Potatoes and onions for dinner',
]

async function toldKey(embeddings?: string): Promise<string> {
  const key = await buildKey(backend)
  const options = embeddings === undefined ? {} : { embeddings }
  await insertMemories(
    backend,
    key,
    told.map((text, n) => ({ text, at: Date.now() - (n + 1) * 1_000_000 })),
    options,
  )
  return key
}

t.test('200: copies what reaches the threshold, and nothing else', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const before = await readDocuments(backend, source)
  const { status, body } = await graft(source, destination)
  t.equal(status, 200)
  t.match(body, {
    dry_run: false,
    operation: 'graft',
    source_key: mask(source),
    destination_key: mask(destination),
    queries: ['the kitten from the shelter'],
    threshold: 0.6,
    copied: 2,
    deduped_or_skipped: 0,
    failed: 0,
    estimated_tokens: Number,
    provenance: { origin_key: mask(source), transferred_at: String },
    operation_id: String,
  })
  t.same(await textsOf(destination), [told[1], told[0]], 'oldest first')
  t.same(await readDocuments(backend, source), before)
  t.equal(await readBill(backend, body.operation_id), body.estimated_tokens)
  t.match(await graft(source, destination, { threshold: null }), {
    body: { threshold: 0.6, copied: 0, deduped_or_skipped: 2, estimated_tokens: 0 },
  })
})

t.test('200: a memory that several queries find is copied once, with its best score', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const queries = ['the kitten from the shelter', 'dentist appointment on Thursday', 'grey kitten']
  const preview = await graft(source, destination, { queries, dry_run: true })
  t.equal(preview.body.count, 3)
  const alone = await Promise.all(
    queries.map(query =>
      graft(source, destination, { queries: [query], dry_run: true, threshold: 0 }),
    ),
  )
  type Row = { id: string; score: number }
  for (const { id, score } of preview.body.memories as Row[]) {
    const scores = alone.flatMap(({ body }) =>
      (body.memories as Row[]).filter(row => row.id === id).map(row => row.score),
    )
    t.equal(score, Math.max(...scores))
  }
  t.match((await graft(source, destination, { queries })).body, { copied: 3, queries })
})

t.test('200: a dry run shows snippet, time, tokens and the score of a search', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const query = 'the kitten from the shelter'
  const { body } = await graft(source, destination, { dry_run: true, threshold: 0.4 })
  t.match(body, { dry_run: true, operation: 'graft', queries: [query], threshold: 0.4 })
  t.notOk('operation_id' in body)
  t.equal(body.count, body.memories.length)
  const found = await as(source).post('/v1/memory/search', { query, limit: 10 })
  const scores = new Map(
    found.body.memories.map((row: { id: string; score: number }) => [row.id, row.score]),
  )
  for (const row of body.memories) {
    t.match(row, {
      id: String,
      snippet: String,
      role: 'user',
      timestamp: Number,
      score: scores.get(row.id),
      estimated_tokens: Number,
    })
    t.ok(row.score >= 0.4)
  }
  const given = body.memories.map((row: { score: number }) => row.score)
  t.same(
    given,
    given.toSorted((a: number, b: number) => b - a),
    'best first',
  )
  t.same(await readDocuments(backend, destination), [])
  t.same((await as(source).get('/v1/operations?kind=graft')).body.items, [])
})

t.test('200: the threshold is met by what equals it, and has no limit of results', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const queries = ['does the kitten need an appointment, or tyres?']
  const ask = (threshold: number) =>
    graft(source, destination, { queries, threshold, dry_run: true })
  const all = await ask(0)
  t.equal(all.body.count, told.length)
  const scores: number[] = all.body.memories.map((row: { score: number }) => row.score)
  t.ok(scores[0]! < 1 && scores[0]! > scores[1]!, `two that differ: ${scores.join(', ')}`)
  t.equal((await ask(scores[1]!)).body.count, 2)
  t.equal((await ask(scores[1]! + 0.0001)).body.count, 1)
  t.equal((await ask(1)).body.count, 0)
  t.match((await graft(source, destination, { queries, threshold: 1 })).body, { copied: 0 })

  const many = await buildKey(backend)
  await insertMemories(
    backend,
    many,
    Array.from({ length: 1_100 }, (_, n) => ({ text: `the kitten from the shelter, ${n}` })),
  )
  t.match((await graft(many, destination, { threshold: 0.4 })).body, { copied: 1_100, failed: 0 })
})

t.test('200: sessions and reflections are not grafted', async t => {
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  const text = 'the kitten from the shelter'
  await insertMemories(backend, source, [{ text }], { session: 'chat' })
  await insertMemories(backend, source, [
    { text: `${text}!`, tier: 2, role: 'system', importance: 5 },
  ])
  t.match((await graft(source, destination, { threshold: 0 })).body, { copied: 0 })
})

t.test(
  '200: a vault too large to be held is compared in the database, with the same result',
  async t => {
    const small = await createTestBackend(t, {
      config: { ...backend.config, vaultIndexCacheBytes: 1 },
    })
    const away = await startTestApi(t, small)
    const [source, destination] = [await toldKey(), await buildKey(backend)]
    const body = {
      destination_key: destination,
      queries: ['the kitten from the shelter', 'winter tyres'],
      threshold: 0.3,
      dry_run: true,
    }
    const held = await as(source).post('/v1/memory/graft', body)
    const read = await createTestClient(away.base, source).post('/v1/memory/graft', body)
    type Row = { id: string; score: number }
    const ids = (rows: Row[]) => rows.map(({ id }) => id)
    t.same(ids(read.body.memories), ids(held.body.memories))
    for (const [n, row] of (read.body.memories as Row[]).entries()) {
      t.ok(Math.abs(row.score - held.body.memories[n].score) < 0.002)
    }
  },
)

t.test('400: a destination that is none, as of a transfer', async t => {
  const source = await toldKey()
  t.match(await graft(source, source), { status: 400, body: { error: /same vault/ } })
})

t.test('502: the embedding model does not answer; 400: it is unknown', async t => {
  const embeddings = 'ollama/double'
  const [source, destination] = [await toldKey(embeddings), await buildKey(backend)]
  provider.fail(401, 1)
  const down = await graft(source, destination, { queries: ['kitten, now'], embeddings })
  t.match(down, { status: 502, body: { error: /refused \(status 401\)/ } })
  t.equal((await graft(source, destination, { embeddings: 'nobody/knows' })).status, 400)
  const up = await graft(source, destination, {
    queries: ['kitten, now'],
    embeddings,
    threshold: 0,
  })
  t.match(up, { status: 200, body: { copied: told.length } })
})
