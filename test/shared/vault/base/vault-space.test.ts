import t from 'tap'
import { createEmbedders } from '#shared/models/embedders.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'

const provider = await startEmbeddingProvider(t)
const backend = await createTestBackend(t, { env: { OLLAMA_BASE_URL: provider.baseUrl } })
const embeddings = 'ollama/forms'
const heron = 'The heron nests on the chimney.'

t.test('502 with the way out where a model has other forms than for the vault', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: heron }], { embeddings })
  const settings = { embeddingModel: embeddings, embeddingPrefixes: { query: 'ask: ' } }
  const later = { ...backend, embedders: createEmbedders({ ...backend.config, ...settings }) }
  t.teardown(() => later.embedders.close())
  const { base } = await startTestApi(t, later)
  await startJobWorkers(later)
  const client = createTestClient(base, key)
  const search = () =>
    client.post('/v1/memory/search', { query: 'where does the heron nest?', limit: 5, embeddings })

  const refused =
    /ollama__forms-64_p\w{8} now, and the memories of this vault stand in ollama__forms-64/
  const { status, body } = await search()
  t.match({ status, ...body }, { status: 502, error: refused, hint: /reembed.*QUERY_PREFIX/ })

  t.equal((await client.post('/v1/memory/reembed', { embeddings })).status, 200)
  t.match(await search(), { status: 200, body: { memories: [{ content: heron }] } })
  const ingest = {
    messages: [{ role: 'user', content: 'The fox sleeps in the shed.' }],
    embeddings,
  }
  t.equal((await client.post('/v1/memory/ingest?wait=true', ingest)).status, 200)
  t.equal((await search()).body.memories.length, 2)
})
