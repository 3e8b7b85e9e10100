import t from 'tap'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'

const provider = await startEmbeddingProvider(t)
const backend = await createTestBackend(t, { env: { OLLAMA_BASE_URL: provider.baseUrl } })
await startJobWorkers(backend)
const api = await startTestApi(t, backend)

const model = 'ollama/double'
const inHeader = { 'x-embedding-model': model }
const messages = (content: string) => [{ role: 'user', content }]

/** The vault spaces of each memory, by its text. */
const spacesOf = async (key: string) => {
  const documents = await readDocuments(backend, key)
  return Object.fromEntries(documents.map(({ text, vectors }) => [text, Object.keys(vectors)]))
}

const textsIn = async (client: TestClient, body: object = {}, headers = {}): Promise<string[]> => {
  const asked = { query: 'the violin', limit: 50, ...body }
  const answer = await client.post('/v1/memory/search', asked, headers)
  return answer.body.memories.map((row: { content: string }) => row.content).toSorted()
}

/** A vault with a memory in each of two spaces. */
async function toldKey(): Promise<{ key: string; client: TestClient }> {
  const key = await buildKey(backend)
  const client = createTestClient(api.base, key)
  const path = '/v1/memory/ingest?wait=true'
  await client.post(path, { messages: messages('the violin of the usual space') })
  await client.post(path, {
    messages: messages('the violin of the other space'),
    embeddings: model,
  })
  return { key, client }
}

t.test(
  '200: an exchange lands in the space it names, by body or header, and in no other',
  async t => {
    const { key, client } = await toldKey()
    const path = '/v1/memory/ingest?wait=true'
    await client.post(path, { messages: messages('the violin by header') }, inHeader)
    t.same(await spacesOf(key), {
      'the violin of the usual space': ['local_v1'],
      'the violin of the other space': ['ollama__double-64'],
      'the violin by header': ['ollama__double-64'],
    })
  },
)

t.test('200: search, prepare and warm-up see the space they name and no other', async t => {
  const { client } = await toldKey()
  const usual = ['the violin of the usual space']
  const other = ['the violin of the other space']
  t.same(await textsIn(client), usual)
  t.same(await textsIn(client, { embeddings: 'local' }), usual)
  t.same(await textsIn(client, { embeddings: model }), other)
  t.same(await textsIn(client, {}, inHeader), other)

  const asked = { messages: messages('what about the violin?') }
  const prepared = await client.post('/v1/memory/prepare', asked)
  t.match(prepared.body.context, usual[0]!)
  t.notMatch(prepared.body.context, other[0]!)
  for (const [body, headers] of [
    [{ ...asked, embeddings: model }, {}],
    [asked, inHeader],
  ] as const) {
    const { context } = (await client.post('/v1/memory/prepare', body, headers)).body
    t.match(context, other[0]!)
    t.notMatch(context, usual[0]!)
  }
  t.match((await client.post('/v1/memory/warmup', {}, inHeader)).body, { memories_loaded: 1 })
})

t.test('200: transfer and graft copy the space they name into the same space', async t => {
  const { client } = await toldKey()
  for (const [path, body] of [
    ['/v1/memory/transfer', {}],
    ['/v1/memory/graft', { queries: ['the violin'], threshold: 0 }],
  ] as const) {
    const destination = await buildKey(backend)
    const asked = { destination_key: destination, ...body }
    const calls = provider.calls.length
    const copied = await client.post(path, { ...asked, embeddings: model })
    t.match(copied, { status: 200, body: { copied: 1 } }, path)
    t.ok(provider.calls.length <= calls + 1, 'texts are not embedded anew')
    t.same(await spacesOf(destination), {
      'the violin of the other space': ['ollama__double-64'],
    })
    t.match(await client.post(path, asked, inHeader), { body: { deduped_or_skipped: 1 } })
    t.match(await client.post(path, asked), { body: { copied: 1, deduped_or_skipped: 0 } })
    t.equal(
      (await textsIn(createTestClient(api.base, destination), { embeddings: model })).length,
      1,
    )
  }
})

t.test('200: an upload lands in the space it names', async t => {
  const key = await buildKey(backend)
  const answer = await createTestClient(api.base, key).send('POST', '/v1/memory/upload', {
    body: JSON.stringify({ content: 'the violin in a file' }),
    headers: { 'content-type': 'application/x-ndjson', ...inHeader },
  })
  t.equal(answer.status, 200)
  t.same(await spacesOf(key), { 'the violin in a file': ['ollama__double-64'] })
})

t.test('200: a batch is taken from the space it names, and its reflections go there', async t => {
  const { key, client } = await toldKey()
  const batch = await client.post('/v1/memory/consolidate/checkout', { tier: 1, embeddings: model })
  t.match(batch.body, { count: 1, memories: [{ text: 'the violin of the other space' }] })
  const entries = [{ text: 'They play the violin', importance: 6 }]
  const commit = { batch_id: batch.body.batch_id, entries }
  t.equal((await client.post('/v1/memory/consolidate/commit', commit)).status, 200)
  t.same((await spacesOf(key))['They play the violin'], ['ollama__double-64'])
})

t.test('200: the list and the stats are about all spaces', async t => {
  const { client } = await toldKey()
  t.match((await client.get('/v1/memory/list')).body, { tier_counts: { raw: 2 } })
  t.match((await client.get('/v1/memory/stats')).body, { memories: 2 })
})

t.test('400: a header with a model that nobody knows', async t => {
  const { client } = await toldKey()
  for (const unknown of ['nobody', 'nobody/knows', '../local', 'openai/no-key', 'local/x']) {
    const headers = { 'x-embedding-model': unknown }
    const answer = await client.post('/v1/memory/search', { query: 'x', limit: 1 }, headers)
    t.match(answer, { status: 400, body: { error: /embedding/ } }, unknown)
  }
})
