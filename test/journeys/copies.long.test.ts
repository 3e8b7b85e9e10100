import t from 'tap'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { startEmbeddingProvider } from '#test/support/embedding-provider.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { resolveCaller, insertMemories } from '#test/support/insert-memories.ts'

t.setTimeout(0)
// Each has databases and processes of its own, and mostly waits: for heartbeats, for deadlines.
t.jobs = 2
const besides = { buffered: true }

const facts = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ text: `fact number ${n}`, tokens: 4 }))

t.test('workers are killed while they copy: everything arrives, once', besides, async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  await insertMemories(backend, source, facts(6_000))
  await insertMemories(backend, destination, facts(100))
  const web = await startWeb(t, config)
  const client = createTestClient(web.base, source)
  const { body } = await client.post(
    '/v1/memory/transfer',
    { destination_key: destination },
    { prefer: 'respond-async' },
  )
  const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body

  for (const chunks of [1, 5]) {
    const worker = await startWorker(t, config)
    await waitUntil('it has copied some', async () => (await operation()).progress.done >= chunks)
    worker.kill('SIGKILL')
    await worker.exited
  }
  await startWorker(t, config)
  await waitUntil('all is copied', async () => (await operation()).state === 'done')

  t.match((await operation()).outcome, {
    status: 200,
    body: { copied: 5_900, deduped_or_skipped: 100, failed: 0, estimated_tokens: 5_900 * 4 },
  })
  const { keyRow, scope } = await resolveCaller(backend, destination)
  const stored = await backend.mongo.memories
    .find({ vault: scope.vault }, { projection: { text: 1 } })
    .toArray()
  const texts = stored.map(({ text }) => text)
  t.equal(texts.length, 6_000)
  t.equal(new Set(texts).size, 6_000)
  t.match(keyRow, { rawUnits: 6_000, rawTokens: 6_000 * 4 })
  const found = await createTestClient(web.base, destination).post('/v1/memory/search', {
    query: 'fact number 5999',
    limit: 1,
  })
  t.equal(found.body.memories[0].content, 'fact number 5999')
})

t.test(
  'workers are killed while they re-embed: both models end with everything',
  besides,
  async t => {
    const config = await createTestConfig(t)
    const provider = await startEmbeddingProvider(t)
    const extra = { OLLAMA_BASE_URL: provider.baseUrl }
    const backend = await createTestBackend(t, { config })
    const key = await buildKey(backend)
    await insertMemories(backend, key, facts(3_000))
    const web = await startWeb(t, config, extra)
    const client = createTestClient(web.base, key)
    const embeddings = 'ollama/double'
    const { body } = await client.post(
      '/v1/memory/reembed',
      { embeddings },
      { prefer: 'respond-async' },
    )
    const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body
    const worker = await startWorker(t, config, extra)
    await waitUntil('it has embedded some', async () => (await operation()).progress.done >= 256)
    worker.kill('SIGKILL')
    await worker.exited
    await startWorker(t, config, extra)
    await waitUntil('all is embedded', async () => (await operation()).state === 'done')
    t.match((await operation()).outcome, { status: 200, body: { embedded: 3_000 } })
    for (const model of ['local', embeddings]) {
      const warm = await client.post('/v1/memory/warmup', {}, { 'x-embedding-model': model })
      t.equal(warm.body.memories_loaded, 3_000, model)
    }
  },
)
