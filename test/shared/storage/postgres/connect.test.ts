import { mock } from 'node:test'
import t from 'tap'
import { Refusal } from '#shared/core/errors.ts'
import { openPostgres, ping } from '#shared/storage/postgres/connect.ts'
import { alterDatabase } from '#test/support/checks/alter-database.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'

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

t.test('bigint is a number; one that a number does not hold is an error', async t => {
  const { rows } = await postgres.query(
    `select ${2 ** 53 - 1}::bigint as n, count(*) from (values (1)) v`,
  )
  t.same(rows, [{ n: 2 ** 53 - 1, count: 1 }])
  await t.rejects(postgres.query('select 9007199254740993::bigint'), { name: 'RangeError' })
  t.same((await postgres.query('select 9007199254740993::bigint::text as n')).rows, [
    { n: '9007199254740993' },
  ])
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

t.test('unavailable: a disk that is full, deadlines of the server, a changed password', async t => {
  for (const code of ['53100', '53200', '53300', '55P03', '57014', '25P03', '28P01']) {
    const sql = `do $$ begin raise exception 'no room' using errcode = '${code}'; end $$`
    const { reason, cause } = await failureOf(postgres.query(sql))
    t.equal(reason, 'unavailable')
    t.match(cause, { code })
  }
})

t.test(
  'unavailable: a read-only database, until its connections lead to one that writes',
  async t => {
    const pool = openPostgres(databaseUrl, { max: 3, onError: () => {} })
    t.teardown(() => pool.close())
    const { query, transaction } = pool
    await query('create table written (id int)')
    const write = () => query('insert into written values (1)')
    const writeLater = () => transaction(async tx => void (await tx.query('delete from written')))
    await alterDatabase(databaseUrl, { default_transaction_read_only: 'on' })
    await Promise.all([query('select pg_sleep(0.1)'), query('select pg_sleep(0.1)')]).catch(
      () => {},
    )
    for (const work of [write, writeLater, () => ping(query)]) {
      const { reason, message, cause } = await failureOf(work())
      t.equal(reason, 'unavailable')
      t.equal(message, 'The database takes no writes')
      t.match(cause, { code: '25006' })
    }
    const three = ['1', '2', '3'].map(() => query('select pg_sleep(0.1)'))
    await Promise.all(three)
    await alterDatabase(databaseUrl, { default_transaction_read_only: 'off' }, { closing: false })
    t.equal((await failureOf(write())).message, 'The database takes no writes')
    await Promise.all([write(), writeLater(), write(), ping(query)])
  },
)

t.test('prepared statements that a pooler loses are sent without names from then on', async t => {
  const losses: unknown[] = []
  const pool = openPostgres(databaseUrl, {
    max: 1,
    onError: () => {},
    onUnnamed: error => losses.push(error),
  })
  t.teardown(() => pool.close())
  const { query, transaction } = pool
  const two = async (tx: Pick<typeof pool, 'query'>) =>
    (await tx.query<{ n: number }>('select 1 + $1::int as n', [1], 'two')).rows[0]!.n
  t.equal(await two(pool), 2)
  await query('deallocate all')
  t.equal(await transaction(two), 2)
  t.match(losses, [{ cause: { code: '26000' } }])
  t.equal(await two(pool), 2)
  t.same((await query('select name from pg_prepared_statements')).rows, [])

  const other = openPostgres(databaseUrl, { max: 1, onError: () => {} })
  t.teardown(() => other.close())
  await other.query('prepare two as select 3')
  t.equal(await two(other), 2)
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
