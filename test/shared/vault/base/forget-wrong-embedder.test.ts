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
const heron = 'The heron nests on the chimney.'

/** A vault with a memory in the space of a model. */
const newVault = async (embeddings: string) => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: heron }], { embeddings })
  return key
}

const searchOf = async (api: string, key: string, embeddings: string) => {
  const { status, body } = await createTestClient(api, key).post('/v1/memory/search', {
    query: 'where does the heron nest?',
    limit: 5,
    embeddings,
  })
  return { status, ...body }
}

t.test('a model that is exchanged: 502 with the way out, until it is put back', async t => {
  const model = 'ollama/exchanged'
  const key = await newVault(model)
  const { base } = await startTestApi(t, backend)
  provider.exchange(32)
  for (let n = 0; n < 4; n++) {
    const answer = await searchOf(base, key, model)
    t.match(answer, { status: 502, error: /32 numbers now, of 64 before/, hint: /reembed/ })
  }
  provider.recover()
  t.match(await searchOf(base, key, model), { status: 200, memories: [{ content: heron }] })
})

t.test('a process that met the wrong model finds the right one when it is back', async t => {
  const [found, stored] = ['ollama/found', 'ollama/stored'] as const
  const keys = { [found]: await newVault(found), [stored]: await newVault(stored) }
  const later = { ...backend, embedders: createEmbedders(backend.config) }
  t.teardown(() => later.embedders.close())
  const { base } = await startTestApi(t, later)
  provider.exchange(32)
  for (const model of [found, stored]) t.equal((await later.embedders.get(model)).dimension, 32)
  provider.recover()

  t.match(await searchOf(base, keys[found], found), { status: 502, hint: /reembed/ })
  t.match(await searchOf(base, keys[found], found), { status: 200, memories: [{ content: heron }] })

  await startJobWorkers(later)
  const client = createTestClient(base, keys[stored])
  const messages = [{ role: 'user', content: 'The fox sleeps in the shed.' }]
  const ingest = { messages, embeddings: stored }
  t.match(await client.post('/v1/memory/ingest?wait=true', ingest), { status: 200 })
  t.equal((await later.embedders.get(stored)).dimension, 64)
  const { memories } = await searchOf(base, keys[stored], stored)
  t.same(memories.map(({ content }: { content: string }) => content).toSorted(), [
    messages[0]!.content,
    heron,
  ])
})
