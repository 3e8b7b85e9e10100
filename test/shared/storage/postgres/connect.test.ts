import { mock } from 'node:test'
import t from 'tap'
import { Refusal } from '#shared/core/errors.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { createTestConfig } from '#test/support/backend.ts'
import { startFaultProxy } from '#test/support/fault-proxy.ts'

const { databaseUrl } = await createTestConfig(t)
const gate = await startFaultProxy(t, databaseUrl)
const postgres = openPostgres(gate.url, { max: 2, onError: () => {} })
t.teardown(() => postgres.close())

const failureOf = async (work: Promise<unknown>): Promise<Refusal> => {
  const error: unknown = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  if (!(error instanceof Refusal)) throw new Error('it was no Refusal', { cause: error })
  return error
}

t.test('unavailable: a database that is out of reach, with the cause for the log', async t => {
  gate.shut()
  for (const work of [
    () => postgres.query('select 1'),
    () => postgres.transaction(tx => tx.query('select 1')),
  ]) {
    const { reason, message, cause } = await failureOf(work())
    t.equal(reason, 'unavailable')
    t.equal(message, 'The database is out of reach')
    t.type(cause, Error)
    t.match(`${(cause as { code?: string }).code} ${String(cause)}`, /ECONN|terminated/)
  }
  gate.open()
  t.equal((await postgres.query('select 1')).rowCount, 1)
})

t.test('connect_timeout is how long a connection is waited for', async t => {
  const silent = await startFaultProxy(t, databaseUrl)
  silent.freeze()
  const refused: string[] = []
  const refusalOf = async (name: string, url: string): Promise<void> => {
    const pool = openPostgres(url, { max: 1, onError: () => {} })
    t.teardown(() => pool.close())
    t.equal((await failureOf(pool.query('select 1'))).reason, 'unavailable')
    refused.push(name)
  }
  const longest = refusalOf('of a minute', `${silent.url}?connect_timeout=60`)
  await Promise.all([
    refusalOf('the service’s own', silent.url),
    refusalOf('of a second', `${silent.url}?connect_timeout=1`),
  ])
  t.same(refused, ['of a second', 'the service’s own'])
  silent.shut()
  await longest
})

t.test('unavailable: a disk that is full, memory that is used up', async t => {
  for (const code of ['53100', '53200', '53300']) {
    const sql = `do $$ begin raise exception 'no room' using errcode = '${code}'; end $$`
    const { reason, cause } = await failureOf(postgres.query(sql))
    t.equal(reason, 'unavailable')
    t.match(cause, { code })
  }
})

t.test('every other error is the statement’s own', async t => {
  await t.rejects(postgres.query('select * from nowhere'), { code: '42P01' })
})

t.test('an idle connection stays for minutes, not seconds', async t => {
  const pool = openPostgres(databaseUrl, { max: 1, onError: () => {} })
  t.teardown(() => pool.close())
  const backend = async () =>
    (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const first = await backend()
  mock.timers.tick(4 * 60_000)
  t.equal(await backend(), first)
  mock.timers.tick(6 * 60_000)
  t.not(await backend(), first)
})
