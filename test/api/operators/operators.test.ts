import { readFileSync } from 'node:fs'
import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import { registry } from '#shared/core/metrics.ts'
import { alterDatabase } from '#test/support/checks/alter-database.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { forgetLastMigration } from '#test/support/checks/alter.ts'

// Metrics are those of the process, which has run other files.
registry.resetMetrics()
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)

const { key: operator } = await buildAdmin(backend, operatorEmail(backend.config))
const { key: somebody } = await buildAdmin(backend)
const basic = (password: string): string =>
  `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}`

const get = (path: string, authorization?: string): Promise<Response> =>
  fetch(api.base + path, { headers: authorization ? { authorization } : {}, redirect: 'manual' })

t.test('401: metrics are for the operator alone', async t => {
  for (const credential of [undefined, `Bearer ${key}`, `Bearer ${somebody}`, basic(somebody)]) {
    const response = await get('/metrics', credential)
    t.equal(response.status, 401)
    t.match(response.headers.get('www-authenticate'), /^Basic/, 'a browser may ask for it')
  }
  t.equal((await get('/metrics', basic(operator))).status, 200)
})

t.test('200: metrics tell of requests, queues and indexes, and of no tenant', async t => {
  const messages = [{ role: 'user', content: 'My cat is called Ada.' }]
  await api.post('/v1/memory/ingest?wait=true', { messages })
  await api.post('/v1/memory/search', { query: 'cat', limit: 1 })
  await api.get(`/v1/memory/${key}/stats`)
  const response = await get('/metrics', `Bearer ${operator}`)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  t.ok(response.headers.get('content-encoding'), 'a tenth of its bytes')
  let page = await response.text()
  // A batch is counted after its work was told, and the queues are looked at every few seconds.
  const counted = /vault_job_batch_seconds_count\{queue="ingest",outcome="done"\} [1-9]/
  const idle =
    /vault_queue_jobs\{queue="ingest",state="waiting"\} 0[^]*connections\{state="idle"\} [1-9]/
  await waitUntil('all of it is counted', async () => {
    page = await (await get('/metrics', `Bearer ${operator}`)).text()
    return counted.test(page) && idle.test(page)
  })
  t.match(
    page,
    /vault_request_seconds_count\{method="POST",route="\/v1\/memory\/search",status="200"\} 1/,
  )
  t.match(page, /vault_recalls_total\{way="search",status="ok"\} 1/)
  t.match(page, /vault_memories_stored_total 1/)
  t.match(page, /vault_organizations_faulty 0/)
  t.match(page, /route="\/v1\/memory\/:key\/stats"/)
  t.match(page, /vault_queue_dead_jobs\{queue="upload"\} 0/)
  t.match(page, /vault_indexes 1/)
  t.match(page, /vault_index_events_total\{event="loads"\} 1/)
  t.match(page, /nodejs_eventloop_lag_seconds/)
  t.notMatch(page, key.slice(3))
  t.notMatch(page, /[0-9a-f]{8}-[0-9a-f]{4}-/)
})

t.test('200: alive, and ready', async t => {
  t.match(await api.get('/health/live'), { status: 200, body: { status: 'ok' } })
  // A look at MongoDB has two seconds; a busy machine may stand still for longer.
  let ready = await api.get('/health/ready')
  await waitUntil('it is ready', async () => {
    ready = await api.get('/health/ready')
    return ready.status === 200
  })
  const parts = ['postgres', 'mongodb', 'queue', 'embeddings'].map(name => ({ name, state: 'ok' }))
  const version = /^\d+\.\d+/
  t.match(ready, { status: 200, body: { status: 'ok', parts, version, uptime_seconds: Number } })
  t.ok(ready.body.queue_lag_seconds < 60)
})

t.test('503: not ready before the release step has run', async t => {
  const last = await forgetLastMigration(backend)
  const pending = new RegExp(`migrations: .*${last.name}`)
  // A look is kept for a moment.
  await waitUntil('it is seen', async () => {
    const { status, body } = await api.get('/health/ready')
    return status === 503 && pending.test(body.error)
  })
  await last.restore()
  await waitUntil('it is ready again', async () => (await api.get('/health/ready')).status === 200)
  t.pass('ready again')
})

t.test(
  '503: not ready and nothing stored while Postgres takes no writes, ready afterwards',
  async t => {
    const { databaseUrl } = backend.config
    await alterDatabase(databaseUrl, { default_transaction_read_only: 'on' })
    await waitUntil('it is seen', async () => {
      const { status, body } = await api.get('/health/ready')
      if (status !== 503 || !/postgres: The database takes no writes/.test(body.error)) return false
      const fault = { words: 'The database takes no writes' }
      t.match(body.parts, [{ name: 'postgres', state: 'down', last_fault: fault }, { state: 'ok' }])
      return true
    })
    const messages = [{ role: 'user', content: 'hello' }]
    const refused = await api.post('/v1/memory/ingest', { messages })
    t.match(refused, { status: 503, body: { error: 'The database takes no writes' } })
    t.ok(refused.headers.get('retry-after'))
    await alterDatabase(databaseUrl, { default_transaction_read_only: 'off' })
    await waitUntil(
      'it is ready again',
      async () => (await api.get('/health/ready')).status === 200,
    )
  },
)

t.test('the dashboard and the alerts in the tree use metrics that exist', async t => {
  const page = await (await get('/metrics', `Bearer ${operator}`)).text()
  const known = new Set(
    [...page.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name, type]) =>
      type === 'histogram' ? [name!, `${name}_bucket`, `${name}_count`] : [name!],
    ),
  )
  for (const file of ['grafana.json', 'alerts.yml']) {
    const text = readFileSync(
      new URL(`../../../scripts/monitoring/${file}`, import.meta.url),
      'utf8',
    )
    const used = new Set(text.match(/\b(?:vault|nodejs)_[a-z0-9_]+/g))
    t.ok(used.size > 5, file)
    t.same(
      [...used].filter(name => !known.has(name)),
      [],
      file,
    )
  }
})
