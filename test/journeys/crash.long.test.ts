import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { checkJournal, sendExchanges, waitUntilSettled } from '#test/support/exchange-journal.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { startEmbeddingProvider } from '#test/support/embedding-provider.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { countRows } from '#test/support/observe.ts'
import { finishedAt } from '#test/support/observe-jobs.ts'

t.setTimeout(0)

/**
 * The promise is 15 s: a missed heartbeat, the next look for one, the first delay. Ten times that, since
 * other tests keep the machine busy; without heartbeats it would be the 15 minutes of a job's expiry.
 */
const redeliveredWithinMs = 150_000

const said = (content: string) => ({ messages: [{ role: 'user', content }] })

t.test('workers are killed, one in the middle of a job: others do it, once', async t => {
  const provider = await startEmbeddingProvider(t)
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const [key, busy] = await Promise.all([buildKey(backend), buildKey(backend)])
  const extra = {
    EMBEDDINGS: 'openai/double',
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: provider.baseUrl,
  }
  const web = await startWeb(t, config, extra)
  const doomed = await startWorker(t, config, extra)
  const client = createTestClient(web.base, key)
  t.equal((await client.post('/v1/memory/ingest?wait=true', said('first'))).status, 200)

  provider.hang()
  const before = provider.calls.length
  const hanging = await client.post('/v1/memory/ingest', said('second'))
  await waitUntil('the worker waits for the provider', () => provider.calls.length > before)
  doomed.kill('SIGKILL')
  const killed = Date.now()

  const journal = sendExchanges(() => web.base, busy, { pauseMs: 50 })
  for (let kill = 0; kill < 3; kill++) {
    const worker = await startWorker(t, config, extra)
    await delay(100 + 150 * kill)
    worker.kill('SIGKILL')
  }
  await startWorker(t, config, extra)
  t.equal(
    (await client.post('/v1/memory/ingest?wait=true', said('third'))).status,
    200,
    'all goes on',
  )
  await waitUntil('there was some load', () => journal.acknowledged.size > 50)
  await journal.stop()
  await waitUntilSettled(backend, redeliveredWithinMs)

  const ms = (await finishedAt(backend, hanging.body.operation_id)).getTime() - killed
  t.comment(`redelivered and stored ${(ms / 1_000).toFixed(1)} s after the kill`)
  t.comment(`${journal.acknowledged.size} acknowledged meanwhile, 4 kills`)
  t.ok(ms < redeliveredWithinMs, `${ms} ms`)
  const acknowledged = new Set(['first', 'second', 'third'])
  await checkJournal(t, backend, key, { acknowledged, unacknowledged: new Set() })
  await checkJournal(t, backend, busy, journal)
})

t.test('the API is killed under load: what it said is true', async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  await startWorker(t, config)
  let web = await startWeb(t, config)
  const journal = sendExchanges(() => web.base, key, { lanes: 12 })
  for (let kill = 0; kill < 4; kill++) {
    const before = journal.acknowledged.size
    await waitUntil('it is under load', () => journal.acknowledged.size > before + 30)
    web.kill('SIGKILL')
    await web.exited
    web = await startWeb(t, config)
  }
  await journal.stop()
  await waitUntilSettled(backend)
  const { acknowledged, unacknowledged, statuses } = journal
  t.comment(`${acknowledged.size} acknowledged, ${unacknowledged.size} not, 4 kills`)
  t.ok(acknowledged.size > 100 && (statuses.get(0) ?? 0) > 0, 'requests were cut off')
  await checkJournal(t, backend, key, journal)
})

t.test('SIGTERM: the API lets requests under way finish and ends with 0', async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const web = await startWeb(t, config)
  const client = createTestClient(web.base, key)
  t.equal((await client.get('/health')).status, 200, 'this connection stays open, and idle')
  const waiting = Array.from({ length: 8 }, (_, n) =>
    client.post('/v1/memory/ingest?wait=true', said(`late ${n}`)),
  )
  await waitUntil('all are accepted', async () => {
    return (await countRows(backend, 'operations')) === 8
  })
  web.kill('SIGTERM')
  await waitUntil('it drains', () => web.output().includes('process.draining'))
  // Not a process of its own, which a busy machine may start later than the API may take to end.
  await startJobWorkers(backend, 'ingest')
  const answers = await Promise.all(waiting)
  t.same(
    answers.map(({ status }) => status),
    Array<number>(8).fill(200),
    'those who waited are answered',
  )
  t.same(await web.exited, { code: 0, signal: null }, web.output())
  t.match(web.output(), /process\.stopped/)

  const worker = await startWorker(t, config)
  worker.kill('SIGTERM')
  t.same(await worker.exited, { code: 0, signal: null }, `so does a worker: ${worker.output()}`)
})

t.test('SIGTERM: a worker under load hands over what it has not done', async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const web = await startWeb(t, config)
  const journal = sendExchanges(() => web.base, key, { lanes: 6 })
  for (let turn = 0; turn < 3; turn++) {
    const worker = await startWorker(t, config)
    await delay(300)
    worker.kill('SIGTERM')
    t.same(await worker.exited, { code: 0, signal: null }, worker.output())
  }
  await startWorker(t, config)
  await journal.stop()
  // No heartbeat has to be missed: nothing was left behind.
  await waitUntilSettled(backend)
  await checkJournal(t, backend, key, journal)
})
