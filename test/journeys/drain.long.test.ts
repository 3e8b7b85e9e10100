import { request } from 'node:http'
import t from 'tap'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import {
  checkJournal,
  sendExchanges,
  waitUntilSettled,
} from '#test/support/checks/exchange-journal.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { countRows } from '#test/support/checks/observe.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const config = await createTestConfig(t)
const backend = await createTestBackend(t, { config })
const key = await buildKey(backend)

/** One request on a connection of its own: its status, or why there was no answer. */
const send = (base: string, word: string): Promise<number | string> =>
  new Promise(resolve => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: word }] })
    const sent = request(
      `${base}/v1/memory/ingest`,
      {
        method: 'POST',
        agent: false,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      response => {
        response.resume().once('end', () => resolve(response.statusCode!))
      },
    )
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    sent.end(body)
  })

/**
 * New connections are let in for five seconds after SIGTERM, and until none has come for 250 ms: a machine that stood
 * still has to try again.
 */
const inTimeMs = 4_000
const standstillMs = 150
const triesMax = 10

t.test('SIGTERM under load: what was let in is answered, what is answered is stored', async t => {
  let asked = 0
  let accepted = 0

  /** @returns whether the load ended while the service still let it in. */
  async function drain(): Promise<boolean> {
    const web = await startWeb(t, config)
    const worker = await startWorker(t, config)
    const answers: (number | string)[] = []
    const enough = new AbortController()
    const clients = Array.from({ length: 8 }, async () => {
      while (!enough.signal.aborted) answers.push(await send(web.base, `drain${asked++}`))
    })
    await waitUntil('the load has begun', () => answers.length > 200)
    const begun = performance.now()
    let [seen, longest] = [begun, 0]
    const watch = setInterval(() => {
      const now = performance.now()
      longest = Math.max(longest, now - seen)
      seen = now
    }, 10)
    web.kill('SIGTERM')
    const before = answers.length
    // As a load balancer does.
    const isStopping = async (): Promise<boolean> => {
      const { status, body } = await createTestClient(web.base).get('/health/ready')
      return status === 503 && body.error.includes('about to stop')
    }
    await waitUntil('it says that it is stopping', () => isStopping().catch(() => true))
    enough.abort()
    await Promise.all(clients)
    clearInterval(watch)
    const isInTime = performance.now() - begun < inTimeMs && longest < standstillMs
    accepted += answers.filter(answer => answer === 202).length
    t.same(await web.exited, { code: 0, signal: null }, web.output())
    worker.kill('SIGTERM')
    t.same(await worker.exited, { code: 0, signal: null }, worker.output())
    if (!isInTime) return false
    t.ok(answers.length > before, 'it went on serving until then')
    t.same([...new Set(answers)], [202], 'no request is dropped')
    return true
  }

  let isInTime = false
  for (let tries = 0; tries < triesMax && !isInTime; tries++) isInTime = await drain()
  t.ok(isInTime)

  const [second, next] = [await startWeb(t, config), await startWorker(t, config)]
  const client = createTestClient(second.base, key)
  await waitUntil('everything accepted is stored, once', async () => {
    const { body } = await client.get('/v1/memory/stats')
    return body.memories >= accepted
  })
  t.equal((await client.get('/v1/memory/stats')).body.memories, accepted)
  await waitUntil('the next worker takes jobs', () => next.output().includes('worker.taking'))
})

t.test('SIGTERM: the API lets requests under way finish and ends with 0', async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const web = await startWeb(t, config)
  const client = createTestClient(web.base, key)
  t.equal((await client.get('/health')).status, 200, 'this connection stays open, and idle')
  const waiting = Array.from({ length: 8 }, (_, n) => {
    const messages = [{ role: 'user', content: `late ${n}` }]
    return client.post('/v1/memory/ingest?wait=true', { messages })
  })
  await waitUntil('all are accepted', async () => (await countRows(backend, 'operations')) === 8)
  web.kill('SIGTERM')
  await waitUntil('it drains', () => web.output().includes('process.draining'))
  // Not a process of its own, which a busy machine may start later than the API may take to end.
  await startJobWorkers(backend, 'ingest')
  const statuses = (await Promise.all(waiting)).map(({ status }) => status)
  t.same(statuses, Array<number>(8).fill(200), 'those who waited are answered')
  t.same(await web.exited, { code: 0, signal: null }, web.output())
  t.match(web.output(), /process\.stopped/)
})

t.test('SIGTERM: a worker under load hands over what it has not done', async t => {
  const config = await createTestConfig(t)
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const { base } = await startTestApi(t, backend)
  const journal = sendExchanges(() => base, key, { lanes: 6 })
  for (let turn = 0; turn < 3; turn++) {
    const before = journal.acknowledged.size
    const worker = await startWorker(t, config)
    await waitUntil('it has work', () => journal.acknowledged.size > before + 20)
    worker.kill('SIGTERM')
    t.same(await worker.exited, { code: 0, signal: null }, worker.output())
  }
  await startJobWorkers(backend)
  await journal.stop()
  // No heartbeat has to be missed: nothing was left behind.
  await waitUntilSettled(backend)
  await checkJournal(t, backend, key, journal)
})
