import t from 'tap'
import { groupCommit } from '#shared/storage/postgres/group-commit.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { createTestConfig } from '#test/support/start/backend.ts'

const { databaseUrl } = await createTestConfig(t)
const postgres = openPostgres(databaseUrl, { max: 4, onError: () => {} })
t.teardown(() => postgres.close())
await postgres.query('create table written (n int primary key check (n >= 0))')

const written = async (): Promise<number[]> =>
  (await postgres.query<{ n: number }>('select n from written order by n')).rows.map(({ n }) => n)

t.test('items that arrive together share a transaction; each gets its own result', async t => {
  let groups = 0
  const write = groupCommit<number, number>(
    postgres,
    async (tx, items) => {
      groups++
      await tx.query('insert into written select unnest($1::int[])', [items])
      return items.map(item => item * 2)
    },
    { concurrency: 1, batchMax: 50 },
  )
  const results = await Promise.all(Array.from({ length: 120 }, (_, n) => write(n)))
  const doubled = Array.from({ length: 120 }, (_, n) => n * 2)
  t.same(results, doubled)
  t.equal((await written()).length, 120)
  t.ok(groups <= 4, `${groups} transactions for 120 items`)
})

t.test('one bad item harms no other and leaves nothing behind', async t => {
  const write = groupCommit<number, number>(
    postgres,
    async (tx, items) => {
      await tx.query('insert into written select unnest($1::int[])', [items])
      return items
    },
    { concurrency: 2, batchMax: 50 },
  )
  const outcomes = await Promise.allSettled([200, 201, -1, 202, 5].map(write))
  const statuses = outcomes.map(({ status }) => status)
  t.same(statuses, ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected'])
  t.same((await written()).slice(-3), [200, 201, 202])
})
