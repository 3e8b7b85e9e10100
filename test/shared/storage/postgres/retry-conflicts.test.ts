import t from 'tap'
import { registry } from '#shared/core/metrics.ts'
import { openPostgres, type Transaction } from '#shared/storage/postgres/connect.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import { skipTimersOfPostgres } from '#test/support/doubles/moved-clock.ts'

const { databaseUrl } = await createTestConfig(t)
const postgres = openPostgres(databaseUrl, { max: 6, onError: () => {} })
t.teardown(() => postgres.close())
await postgres.query('create table counted (id int primary key, n int not null)')
await postgres.query('insert into counted values (1, 0), (2, 0)')

const raise = ({ query }: Pick<Transaction, 'query'>, id: number) =>
  query('update counted set n = n + 1 where id = $1', [id])
const countOf = async (id: number): Promise<number> =>
  (await postgres.query<{ n: number }>('select n from counted where id = $1', [id])).rows[0]!.n

const skip = skipTimersOfPostgres

t.test('a transaction that Postgres ends because of a deadlock runs again', { skip }, async t => {
  let runs = 0
  const bothHold = Promise.withResolvers<void>()
  let holding = 0
  const raiseBoth = (first: number, second: number) =>
    postgres.transaction(async tx => {
      runs++
      await raise(tx, first)
      // In the first round each holds one row before it asks for the other's.
      if (++holding === 2) bothHold.resolve()
      await bothHold.promise
      await raise(tx, second)
    })
  await Promise.all([raiseBoth(1, 2), raiseBoth(2, 1)])
  // On a busy machine both may look for a deadlock at the same moment, and both are victims, perhaps again.
  t.ok(runs >= 3, `a victim ran again: ${runs} runs`)
  const retries = `vault_transaction_retries_total{code="40P01"} ${runs - 2}\n`
  t.ok((await registry.metrics()).includes(retries), retries)
  t.equal(await countOf(1), 2)
  t.equal(await countOf(2), 2)
})

t.test('a serialization failure is run again, five times in all', async t => {
  let runs = 0
  const work = postgres.transaction(async ({ query }) => {
    runs++
    await query(`do $$ begin raise exception 'conflict' using errcode = '40001'; end $$`)
  })
  await t.rejects(work, { reason: 'unavailable', cause: { code: '40001' } })
  t.equal(runs, 5)
})

t.test('any other failure is not run again', async t => {
  let runs = 0
  const work = postgres.transaction(async ({ query }) => {
    runs++
    await query('insert into counted values (1, 0)')
  })
  await t.rejects(work, { code: '23505' })
  t.equal(runs, 1)
})
