import t from 'tap'
import { jobNames } from '#shared/domain/jobs.ts'
import { migrate } from '#shared/storage/postgres/migrate.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startPoolerDouble } from '#test/support/doubles/pooler-double.ts'

const config = await createTestConfig(t)
const { databaseUrl } = config

t.test('a pooler and its mode are found out', async t => {
  const poolerOf = async (url: string) => {
    const postgres = openPostgres(url, { max: 1, onError: () => {} })
    t.teardown(() => postgres.close())
    return postgres.pooler()
  }
  t.equal(await poolerOf(databaseUrl), 'none')
  t.equal(await poolerOf(await startPoolerDouble(t, databaseUrl, { mode: 'session' })), 'session')
  for (const size of [1, 2, 4]) {
    const url = await startPoolerDouble(t, databaseUrl, { mode: 'transaction', size })
    t.equal(await poolerOf(url), 'transaction')
  }
})

t.test('behind one in transaction mode everything works, a second later at most', async t => {
  const url = await startPoolerDouble(t, databaseUrl, { mode: 'transaction', size: 8 })
  t.same(await migrate(url), [])
  const backend = await createTestBackend(t, { config: { ...config, databaseUrl: url } })
  await startJobWorkers(backend, ...jobNames)
  const { base } = await startTestApi(t, backend)
  const api = createTestClient(base, await buildKey(backend))
  const rounds = Array.from({ length: 16 }, async (_, n) => {
    const messages = [{ role: 'user', content: `Drawer ${n} holds the spare key.` }]
    const asked = { query: `spare key ${n}`, limit: 3 }
    return [
      (await api.post('/v1/memory/ingest?wait=true', { messages })).status,
      (await api.post('/v1/memory/search', asked)).status,
      (await api.get('/v1/memory/list')).status,
    ]
  })
  t.same(
    (await Promise.all(rounds)).flat(),
    Array.from({ length: 48 }, () => 200),
  )
  t.equal((await api.get('/v1/memory/stats')).body.memories, 16)
  t.match(await api.get('/health/ready'), { status: 200, body: { limitations: [/LISTEN/] } })
})
