import t, { type Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import {
  createTestBackend,
  createTestConfig,
  defaultRecallTimeout,
} from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** A busy machine adds to the 8 s; without them it would be minutes. */
const hangMs = 60_000

const model = 'ollama/nomic'
const provider = await startModelProvider(t)
provider.respondAlways(respondJson(chatCompletion('Fine.')))
const embedding = await startEmbeddingProvider(t)
const config = await createTestConfig(t, {
  ...defaultRecallTimeout,
  ...provider.env,
  OLLAMA_BASE_URL: embedding.baseUrl,
  EMBEDDINGS: model,
})
const worker = await createTestBackend(t, { config })
await startJobWorkers(worker, 'ingest')

/** A process of its own, with a key whose vault has one memory. */
async function startClient(t: Test, backend: Backend) {
  const { base } = await startTestApi(t, backend)
  const key = await buildKey(worker)
  const client = createTestClient(base, key)
  const headers = { 'x-memory-key': key, authorization: `Bearer ${providerKey('openai')}` }
  const call = (content: string) =>
    createTestClient(base).post(
      '/v1/chat/completions',
      { model: 'openai/gpt-5', messages: [{ role: 'user', content }] },
      headers,
    )
  const statusOf = async (content: string) => (await call(content)).headers.get('x-memory-status')
  const search = (query: string) => client.post('/v1/memory/search', { query, limit: 1 })
  return { client, call, statusOf, search }
}

/** The shortest of up to ten runs: the machine may stall in one, a wait of the service is in each. */
async function shortestMs(work: () => Promise<unknown>): Promise<number> {
  let shortest = Infinity
  for (let run = 0; run < 10 && shortest >= withoutWaitMs; run++) {
    shortest = Math.min(shortest, (await timed(work())).ms)
  }
  return shortest
}

/** A call waits 1.5 s for its memories. */
const withoutWaitMs = 1_400

async function timed<Result>(work: Promise<Result>): Promise<{ result: Result; ms: number }> {
  const startedAt = performance.now()
  const result = await work
  return { result, ms: performance.now() - startedAt }
}

t.test('a hanging embedding model: a first search and an edit are a 502 within 8 s', async t => {
  const { search } = await startClient(t, await createTestBackend(t, { config }))
  const { client } = await startClient(t, await createTestBackend(t, { config }))
  const text = 'The kettle is green and stands on the shelf'
  const messages = [{ role: 'user', content: text }]
  t.equal((await client.post('/v1/memory/ingest?wait=true', { messages })).status, 200)
  const { body: listed } = await client.get('/v1/memory/list')
  const change = { memory_id: listed.items[0].memory_id, text: 'The kettle is red' }
  embedding.hang('always')
  const hanging = [search('Where is the kettle?'), client.post('/v1/memory/edit', change)]
  for (const { result, ms } of await Promise.all(hanging.map(timed))) {
    t.equal(result.status, 502)
    t.ok(ms < hangMs, `${Math.round(ms)} ms`)
  }
  embedding.recover()
  t.match((await client.get('/v1/memory/list')).body.items, [{ text }], 'nothing is changed')
})

t.test('a page instead of vectors is a 502', async t => {
  const { search } = await startClient(t, await createTestBackend(t, { config }))
  for (const [type, body] of [
    ['text/html', '<html>Please sign in</html>'],
    ['application/json', '<html>'],
    ['application/json', 'null'],
    ['application/json', '{"data":[{"index":0}]}'],
    ['application/json', '{"data":[{"index":0,"embedding":[]}]}'],
  ] as const) {
    embedding.answerAlways(type, body)
    t.match(await search(`Where? ${type} ${body}`), { status: 502, body: { error: /embedding/ } })
  }
  embedding.recover()
})

t.test(
  'calls wait for a hanging model a few times, then go on without it until it is back',
  async t => {
    const backend = await createTestBackend(t, { config })
    const { call, statusOf, search } = await startClient(t, backend)
    t.equal((await search('warm up')).status, 200)
    embedding.hang('always')
    const breaker = backend.embedders.breakerOf(model)!
    let waited = 0
    while (breaker.state === 'closed' && waited < 10) {
      t.equal(await statusOf(`Question ${waited++}`), 'degraded')
    }
    t.ok(waited >= 2 && waited < 10, `${waited} calls waited`)
    let number = 0
    await waitUntil('only a probe may have asked it', async () => {
      const asked = embedding.calls.length
      t.equal(await statusOf(`Where is dentist number ${number++} of my son?`), 'degraded')
      return embedding.calls.length - asked <= 1
    })

    await waitUntil('it counts as away', async () => breaker.state === 'open')
    const refused = await search('Where is the dentist?')
    t.match(refused, { status: 502, body: { error: /has not answered lately/ } })
    const ms = await shortestMs(() => call('Where is the dentist of my daughter?'))
    t.ok(ms < withoutWaitMs, `${Math.round(ms)} ms`)

    embedding.recover()
    await waitUntil('it counts as there', async () => breaker.state === 'closed')
    await waitUntil(
      'a call waits for it again, and has its answer in time',
      async () => (await statusOf('Where is the dentist now?')) !== 'degraded',
    )
  },
)

t.test(
  'calls of cold vaults do not wait for a MongoDB that is frozen; warm ones need none',
  async t => {
    const gate = await startFaultProxy(t, config.mongodbUri)
    const backend = await createTestBackend(t, { config: { ...config, mongodbUri: gate.url } })
    const warm = await startClient(t, backend)
    const text = 'The kettle is blue and stands beside the sink'
    const messages = [{ role: 'user', content: text }]
    t.equal((await warm.client.post('/v1/memory/ingest?wait=true', { messages })).status, 200)
    const isRecalled = async () => (await warm.statusOf('Which colour has the kettle?')) === 'ok'
    await waitUntil('it is recalled in time', isRecalled)

    gate.freeze()
    const { storeBreaker } = backend
    let waited = 0
    while (storeBreaker.state !== 'open' && waited < 10) {
      const cold = await startClient(t, backend)
      t.equal(await cold.statusOf(`Question ${waited++}`), 'degraded')
    }
    t.equal(storeBreaker.state, 'open', `${waited} calls waited`)
    const cold = await startClient(t, backend)
    t.equal(await cold.statusOf('Where is the dentist of my son?'), 'degraded')
    const ms = await shortestMs(() => cold.call('Where is the dentist of my daughter?'))
    t.ok(ms < withoutWaitMs, `${Math.round(ms)} ms`)
    t.equal((await cold.search('Where is the dentist?')).status, 503)

    gate.open()
    await waitUntil('it counts as there', async () => storeBreaker.state === 'closed')
    await waitUntil(
      'a call waits for it again, and has its answer in time',
      async () => (await cold.statusOf('Where is the dentist now?')) !== 'degraded',
    )
  },
)
