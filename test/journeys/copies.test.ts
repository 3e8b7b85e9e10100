import t from 'tap'
import { buildKey, clientOf } from '#test/support/api.ts'
import { testBackend, testConfig } from '#test/support/backend.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { embeddingProvider } from '#test/support/provider.ts'
import { until } from '#test/support/until.ts'
import { callerOf, remember } from '#test/support/vault.ts'

t.setTimeout(0)
// Each has databases and processes of its own, and mostly waits: for heartbeats, for deadlines.
t.jobs = 2
const besides = { buffered: true }

const facts = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ text: `fact number ${n}`, tokens: 4 }))

t.test('workers are killed while they copy: everything arrives, once', besides, async t => {
  const config = await testConfig(t)
  const backend = await testBackend(t, { config })
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  await remember(backend, source, facts(6_000))
  await remember(backend, destination, facts(100))
  const web = await startWeb(t, config)
  const client = clientOf(web.base, source)
  const { body } = await client.post(
    '/v1/memory/transfer',
    { destination_key: destination },
    { prefer: 'respond-async' },
  )
  const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body

  for (const chunks of [1, 5]) {
    const worker = await startWorker(t, config)
    await until('it has copied some', async () => (await operation()).progress.done >= chunks)
    worker.kill('SIGKILL')
    await worker.ended
  }
  await startWorker(t, config)
  await until('all is copied', async () => (await operation()).state === 'done', 60_000)

  t.match((await operation()).outcome, {
    status: 200,
    body: { copied: 5_900, deduped_or_skipped: 100, failed: 0, estimated_tokens: 5_900 * 4 },
  })
  const { row, scope } = await callerOf(backend, destination)
  const stored = await backend.mongo.memories
    .find({ vault: scope.vault }, { projection: { text: 1 } })
    .toArray()
  const texts = stored.map(({ text }) => text)
  t.equal(texts.length, 6_000)
  t.equal(new Set(texts).size, 6_000)
  t.match(row, { rawUnits: 6_000, rawTokens: 6_000 * 4 })
  const found = await clientOf(web.base, destination).post('/v1/memory/search', {
    query: 'fact number 5999',
    limit: 1,
  })
  t.equal(found.body.memories[0].content, 'fact number 5999')
})

t.test(
  'workers are killed while they embed anew: both models end with everything',
  besides,
  async t => {
    const config = await testConfig(t)
    const provider = await embeddingProvider(t)
    const extra = { OLLAMA_BASE_URL: provider.baseUrl }
    const backend = await testBackend(t, { config })
    const key = await buildKey(backend)
    await remember(backend, key, facts(3_000))
    const web = await startWeb(t, config, extra)
    const client = clientOf(web.base, key)
    const embeddings = 'ollama/double'
    const { body } = await client.post(
      '/v1/memory/reembed',
      { embeddings },
      { prefer: 'respond-async' },
    )
    const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body
    const worker = await startWorker(t, config, extra)
    await until('it has embedded some', async () => (await operation()).progress.done >= 256)
    worker.kill('SIGKILL')
    await worker.ended
    await startWorker(t, config, extra)
    await until('all is embedded', async () => (await operation()).state === 'done', 60_000)
    t.match((await operation()).outcome, { status: 200, body: { embedded: 3_000 } })
    for (const model of ['local', embeddings]) {
      const warm = await client.post('/v1/memory/warmup', {}, { 'x-embedding-model': model })
      t.equal(warm.body.memories_loaded, 3_000, model)
    }
  },
)
