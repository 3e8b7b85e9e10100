import t, { type Test } from 'tap'
import { createMetricsCollector } from '#shared/operations/collect-metrics.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import { makeJobsDue, multiplyJobs } from '#test/support/checks/alter-jobs.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { checkJournal, waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { jobUpdates } from '#test/support/checks/observe-jobs.ts'
import { startWorker } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)
const model = 'ollama/nomic'
const otherModel = 'vllm/other'

/** Two providers, the default model at the first, and a process that takes no jobs yet. */
async function startService(t: Test) {
  const [away, there] = [await startEmbeddingProvider(t), await startEmbeddingProvider(t)]
  const env = {
    OLLAMA_BASE_URL: away.baseUrl,
    VLLM_BASE_URL: there.baseUrl,
    EMBEDDINGS: model,
  }
  const config = await createTestConfig(t, env)
  const backend = await createTestBackend(t, { config })
  const { base } = await startTestApi(t, backend)
  const newVault = async (embeddings: string) => {
    const key = await buildKey(backend)
    const client = createTestClient(base, key)
    const journal = { acknowledged: new Set<string>(), unacknowledged: new Set<string>() }
    const operations: string[] = []
    const send = async () => {
      const content = `exchange ${journal.acknowledged.size} of ${key.slice(-6)}`
      const messages = [{ role: 'user', content }]
      const path = `/v1/memory/ingest?embeddings=${embeddings}`
      const { status, body } = await client.post(path, { messages })
      if (status !== 202) throw new Error(`${status}`)
      journal.acknowledged.add(content)
      operations.push(body.operation_id)
    }
    const check = async (t: Test) => {
      await checkJournal(t, backend, key, journal)
      const listed: string[] = []
      let next = ''
      do {
        const { body } = await client.get(`/v1/memory/list?limit=100${next}`)
        listed.push(...body.items.map(({ text }: { text: string }) => text))
        next = body.has_more ? `&cursor=${encodeURIComponent(body.next_cursor)}` : ''
      } while (next !== '')
      t.same(listed.reverse(), [...journal.acknowledged], 'in the order in which it was sent')
    }
    return { client, send, check, operations }
  }
  const ingestQueue = async () =>
    (await readQueueStats(backend.postgres.query)).find(({ name }) => name === 'ingest')!
  const untilHeld = (count: number) =>
    waitUntil(`${count} wait for the model`, async () => (await ingestQueue()).held === count)
  return { env, config, backend, away, there, newVault, ingestQueue, untilHeld }
}

t.test('two hours without an embedding model: all is stored, the others go on', async t => {
  const { env, config, backend, away, newVault, ingestQueue, untilHeld } = await startService(t)
  const [waiting, going] = [await newVault(model), await newVault(otherModel)]
  away.fail(503, Infinity)
  // Mixed, so that jobs of both are in each batch.
  for (let n = 0; n < 150; n++) for (const vault of [waiting, going]) await vault.send()
  const victim = await startWorker(t, config, env)
  await startJobWorkers(backend, 'ingest')
  await untilHeld(150)
  await going.check(t)
  t.match(await ingestQueue(), { held: 150, waitsFor: model, retrying: 0, dead: 0 })
  victim.kill('SIGKILL')

  const asked = away.calls.length
  // What would be more than all tries, each with the waits before it.
  for (let n = 0; n < 15; n++) {
    await makeJobsDue(backend, 'ingest')
    await waiting.send()
    await untilHeld(150 + n + 1)
  }
  t.ok(away.calls.length - asked < 50, 'only probes ask the model')
  const { text } = await createMetricsCollector(backend, async () => 0)()
  t.match(text, `vault_dependency_state{dependency="${model}"} 2`)
  t.match(text, 'vault_queue_jobs{queue="ingest",state="held"} 165')
  const operation = `/v1/operations/${waiting.operations[0]}`
  t.match((await waiting.client.get(operation)).body, {
    state: 'accepted',
    waiting_for: /^ollama\/nomic: refused \(status 503\): scripted failure/,
  })

  away.fail(503, 0)
  t.comment(`stored ${await waitUntilSettled(backend)} ms after it was back`)
  await waiting.check(t)
  t.match(await ingestQueue(), { held: 0, waitsFor: null })
})

t.test('a refusal of the model holds its jobs until it is mended', async t => {
  const { backend, away, newVault, untilHeld } = await startService(t)
  const vault = await newVault(model)
  away.fail(404, Infinity)
  for (let n = 0; n < 20; n++) await vault.send()
  await startJobWorkers(backend, 'ingest')
  await untilHeld(20)
  t.match(backend.embedders.breakerOf(model), {
    state: 'refused',
    reason: /^refused \(status 404\): scripted failure/,
  })
  away.fail(404, 0)
  await waitUntilSettled(backend)
  await vault.check(t)
})

t.test('ten thousand waiting jobs are left alone until the model is back', async t => {
  const { backend, away, newVault, ingestQueue, untilHeld } = await startService(t)
  const vault = await newVault(model)
  away.fail(503, Infinity)
  await vault.send()
  await multiplyJobs(backend, 'ingest', 9_999)
  await startJobWorkers(backend, 'ingest')
  await untilHeld(10_000)
  await new Promise(resolve => setTimeout(resolve, 11_000))
  const before = await jobUpdates(backend)
  await new Promise(resolve => setTimeout(resolve, 60_000))
  const perMinute = (await jobUpdates(backend)) - before
  t.comment(`${perMinute} updates in a minute of 10,000 waiting jobs, ${before} to hold them`)
  t.ok(perMinute < 3_000)
  away.fail(503, 0)
  const back = performance.now()
  await waitUntil('all are done', async () => {
    const { waiting, retrying, active, dead } = await ingestQueue()
    return waiting + retrying + active + dead === 0
  })
  t.comment(`done ${Math.round(performance.now() - back)} ms after it was back`)
})
