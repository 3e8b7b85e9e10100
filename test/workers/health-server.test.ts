import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  processEnvironment,
  launchProcess,
  startProcess,
  type RunningProcess,
} from '#test/support/start/processes.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const provider = await startEmbeddingProvider(t)
const embeddings = { OLLAMA_BASE_URL: provider.baseUrl, EMBEDDINGS: 'ollama/small' }
const backend = await createTestBackend(t, { env: embeddings })
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
const { key: operator } = await buildAdmin(backend, operatorEmail(backend.config))
const { key: somebody } = await buildAdmin(backend)
const env = processEnvironment(backend.config, { ...embeddings, METRICS_PORT: '0' })

/** Readiness may arrive before the output that was written earlier. */
async function portOf({ output }: Pick<RunningProcess, 'output'>): Promise<string> {
  const watched = /"port":(\d+)[^\n]*worker\.watched/
  await waitUntil('the worker prints its port', () => watched.test(output()))
  return watched.exec(output())![1]!
}

const basic = (password: string): string =>
  `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}`

t.test('a worker tells of the jobs it has done, and of its own calls to providers', async t => {
  const worker = await startProcess(t, 'node workers/index.ts ingest', env)
  const base = `http://127.0.0.1:${await portOf(worker)}`
  const ask = (path: string, authorization?: string, method = 'GET') =>
    fetch(base + path, { method, headers: authorization ? { authorization } : {} })
  const metrics = async (): Promise<string> => (await ask('/metrics', `Bearer ${operator}`)).text()

  t.notMatch(await metrics(), /vault_job_batch_seconds_count\{/, 'nothing was done yet')
  const messages = [{ role: 'user', content: 'the cat is called Ada' }]
  t.equal((await api.post('/v1/memory/ingest?wait=true', { messages })).status, 200)
  // A batch is counted after the exchange of it is stored, and answered.
  for (const line of [
    /vault_job_batch_seconds_count\{queue="ingest",outcome="done"\} [1-9]/,
    /vault_provider_seconds_count\{provider="ollama",status="200"\} [1-9]/,
    /vault_queue_jobs\{queue="ingest",state="waiting"\} 0/,
  ])
    await waitUntil(String(line), async () => line.test(await metrics()))
  t.notMatch(await metrics(), /Ada|mk_/)

  provider.fail(500, 1)
  const failing = await api.post('/v1/memory/ingest', { messages })
  t.equal(failing.status, 202)
  await waitUntil('the failure is counted', async () =>
    /vault_provider_seconds_count\{provider="ollama",status="5\d\d"\} [1-9]/.test(await metrics()),
  )

  t.comment('a refusal of the model, in its own words, wherever its jobs are asked for')
  provider.fail(404, Infinity, 'model "small" not found, try pulling it first')
  const waits = await api.post('/v1/memory/ingest', { messages })
  // The one before may wait as well.
  const held = /vault_queue_jobs\{queue="ingest",state="held"\} [12]/
  await waitUntil('it waits', async () => held.test(await metrics()))
  const waiting_for = /^ollama\/small: refused \(status 404\): model "small" not found/
  t.match(await metrics(), 'vault_dependency_state{dependency="ollama/small"} 3')
  t.match(await (await ask('/health/ready')).json(), { status: 'ok', waiting_for })
  const operation = `/v1/operations/${waits.body.operation_id}`
  t.match((await api.get(operation)).body, { state: 'accepted', waiting_for })
  const [listed] = (await api.get('/v1/operations?state=accepted')).body.items
  t.match(listed, { operation_id: waits.body.operation_id, waiting_for })
  await waitUntil('searches have found it out too', async () => {
    const { status } = await api.post('/v1/memory/search', {
      query: `cat ${Math.random()}`,
      limit: 1,
    })
    const { body } = await api.get('/health/ready')
    return status === 502 && waiting_for.test(body.waiting_for)
  })
  t.equal(worker.output().split('dependency.state').length, 2, 'it is logged once')
  provider.fail(404, 0)

  t.equal((await ask('/metrics', basic(operator))).status, 200)
  for (const credential of [undefined, `Bearer ${key}`, `Bearer ${somebody}`, 'Basic !']) {
    const refused = await ask('/metrics', credential)
    t.equal(refused.status, 401)
    t.match(refused.headers.get('www-authenticate'), /^Basic/)
    t.same(await refused.json(), { error: 'This page is for the operator' })
  }
  t.same(await (await ask('/health/live')).json(), { status: 'ok' })
  t.match(await (await ask('/health/ready')).json(), { status: 'ok', queue_lag_seconds: Number })
  t.equal((await ask('/health/live', undefined, 'HEAD')).status, 200)
  t.equal((await ask('/v1/memory/stats', `Bearer ${key}`)).status, 404, 'it is no API')
  t.equal((await ask('/health/live', undefined, 'POST')).status, 405)

  t.comment('503: not ready while the release step of this version has not run')
  const { query } = backend.postgres
  await query(`create table put_away as select * from migrations where name like '0001%'`)
  await query(`delete from migrations where name like '0001%'`)
  await waitUntil('it is seen', async () => (await fetch(`${base}/health/ready`)).status === 503)
  t.equal((await fetch(`${base}/health/live`)).status, 200)
  await query('insert into migrations select * from put_away')
  await waitUntil('it is over', async () => (await fetch(`${base}/health/ready`)).status === 200)

  worker.kill('SIGTERM')
  t.match(await worker.exited, { code: 0 })
  await t.rejects(ask('/health/live'))
})

t.test('without METRICS_PORT a worker opens no port; one that is taken is told', async t => {
  const { METRICS_PORT: _, ...without } = env
  const worker = launchProcess(t, 'node workers/index.ts ingest', without)
  const taken = createServer()
  await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const late = launchProcess(t, 'node workers/index.ts ingest', {
    ...env,
    METRICS_PORT: String(port),
  })
  await waitUntil('it takes jobs', () => worker.output().includes('worker.taking'))
  t.notMatch(worker.output(), /worker\.watched/)
  t.match(await late.exited, { code: 1 })
  t.match(late.output(), new RegExp(`^Port ${port} is in use; set METRICS_PORT[^\\n]*\\n$`, 'm'))
})
