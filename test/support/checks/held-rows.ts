import pg from 'pg'
import type { Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/* Races of two transactions in a fixed order: one waits for a row that the test holds, the other for the first. */

/**
 * Holds the row, or the lock, that a statement takes.
 *
 * @param parameter of the statement
 * @returns what lets go of it
 */
export async function holdRow(
  t: Test,
  { config }: Pick<Backend, 'config'>,
  statement: string,
  parameter: string,
): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: config.databaseUrl })
  await client.connect()
  t.teardown(() => client.end())
  await client.query('begin')
  const { rowCount } = await client.query(statement, [parameter])
  t.equal(rowCount, 1, 'a row is held')
  return async () => void (await client.query('commit'))
}

/** Holds the end of the events of an account, which every new one waits for. @returns what lets go of it */
export const holdAccountEvents = (
  t: Test,
  backend: Pick<Backend, 'config'>,
  account: string,
): Promise<() => Promise<void>> =>
  holdRow(t, backend, 'select from account_event_heads where account = $1 for update', account)

/** Waits until so many connections of this database wait for a lock. */
export const untilWaiting = (
  { postgres }: Pick<Backend, 'postgres'>,
  count: number,
): Promise<void> =>
  waitUntil(`${count} wait for a lock`, async () => {
    const { rows } = await postgres.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0]!.n === count
  })
