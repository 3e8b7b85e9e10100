import t from 'tap'
import { releasePostgres } from '#scripts/release.ts'
import { jobNames } from '#shared/domain/jobs.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { createLog } from '#shared/core/log.ts'
import { alterDatabase } from '#test/support/checks/alter-database.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'

const config = await createTestConfig(t)
await alterDatabase(config.databaseUrl, {
  DateStyle: 'German',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kolkata',
  search_path: 'nowhere',
  default_transaction_isolation: 'serializable',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
})

t.test('a release and every answer are as with any other settings of the database', async t => {
  t.same(await releasePostgres(config.databaseUrl, createLog('silent', 'test')), [])
  const backend = await createTestBackend(t, { config })
  await startJobWorkers(backend, ...jobNames)
  const { base } = await startTestApi(t, backend)
  const api = createTestClient(base, await buildKey(backend))
  const timestamp = '2025-07-04T19:00:00.000Z'
  const stored = await api.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'My balalaika is red.', timestamp }],
  })
  t.equal(stored.status, 200)
  t.equal((await api.post('/v1/keys', {})).status, 201)
  t.match(await api.get('/v1/keys'), { status: 200, body: { items: [{ created_at: /^20.*Z$/ }] } })
  t.equal((await api.get('/v1/operations')).status, 200)
  t.match((await api.get('/v1/memory/list')).body.items, [{ date: timestamp }])
  t.equal((await api.post('/v1/memory/consolidate/checkout', { tier: 1 })).status, 200)
})

t.test('a transaction is read committed also where a pooler loses the settings', async t => {
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  t.teardown(() => postgres.close())
  await postgres.query(`set default_transaction_isolation = 'serializable'`)
  await postgres.transaction(async tx => {
    const { rows } = await tx.query('show transaction_isolation')
    t.same(rows, [{ transaction_isolation: 'read committed' }])
  })
})
