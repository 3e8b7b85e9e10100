import { Socket } from 'node:net'
import t from 'tap'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { createTestConfig } from '#test/support/start/backend.ts'

const { databaseUrl } = await createTestConfig(t)
const postgres = openPostgres(databaseUrl, { max: 1, onError: () => {} })
t.teardown(() => postgres.close())

/** Runs work and counts its writes to sockets; only the database is spoken to. */
async function countWrites(work: () => Promise<unknown>): Promise<number> {
  const { _write, _writev } = Socket.prototype
  let writes = 0
  Socket.prototype._write = function (this: Socket, ...given) {
    writes++
    return Reflect.apply(_write, this, given)
  }
  Socket.prototype._writev = function (this: Socket, ...given) {
    writes++
    return Reflect.apply(_writev!, this, given)
  }
  try {
    await work()
  } finally {
    Object.assign(Socket.prototype, { _write, _writev })
  }
  return writes
}

t.test('the first statements of a transaction are one write, the commit another', async t => {
  await postgres.query('create temporary table one (n int)')
  const writes = await countWrites(() =>
    postgres.transaction(({ query }) =>
      Promise.all([
        query('insert into one values ($1)', [1], 'insert'),
        query('update one set n = $1', [2], 'update'),
      ]),
    ),
  )
  t.equal(writes, 2)
  t.same((await postgres.query('select n from one')).rows, [{ n: 2 }])
})

t.test('a commit that waits for no answer is in the same write', async t => {
  const insert = (n: number) =>
    postgres.transaction(({ query, commit }) => {
      const inserted = query('insert into one values ($1), (1 / $2::int)', [n, n], 'insert-two')
      commit()
      return inserted
    })
  await insert(7)
  t.equal(await countWrites(() => insert(8)), 1)
  await t.rejects(insert(0), { code: '22012' })
  const { rows } = await postgres.query('select n from one where n in (0, 7, 8) order by n')
  t.same(rows, [{ n: 0 }, { n: 0 }, { n: 7 }, { n: 8 }])
  t.equal((await postgres.query('select pg_current_xact_id_if_assigned() as id')).rows[0]!.id, null)
})

t.test('a transaction whose failed statement was ignored fails', async t => {
  const work = postgres.transaction(async ({ query }) => {
    await query('select 1 / 0').catch(() => {})
  })
  await t.rejects(work, { code: '22012' })
})

t.test('the error is that of the statement that failed, whichever is awaited first', async t => {
  const work = postgres.transaction(async ({ query }) => {
    const failed = query('select 1 / 0')
    failed.catch(() => {})
    await query('select 1')
    await failed
  })
  await t.rejects(work, { code: '22012' })
})

t.test('a later statement is sent at once', async t => {
  const writes = await countWrites(() =>
    postgres.transaction(async ({ query }) => {
      await query('insert into one values (3)')
      await query('insert into one values (4)')
    }),
  )
  t.equal(writes, 3)
})

t.test('a statement that fails rolls all of them back', async t => {
  await t.rejects(
    postgres.transaction(({ query }) =>
      Promise.all([query('insert into one values (5)'), query('insert into nowhere values (1)')]),
    ),
    { code: '42P01' },
  )
  t.same((await postgres.query('select n from one where n = 5')).rows, [])
})
