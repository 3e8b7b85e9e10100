import type pg from 'pg'

/**
 * Settings that the statements of the service and its libraries need. A server, a database or a role may be set to
 * anything else: with a `DateStyle` of `German` the driver reads every time as null.
 */
const settings: Readonly<Record<string, string>> = {
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  search_path: 'public',
  default_transaction_isolation: 'read committed',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
}

/**
 * Plans of prepared statements. Postgres keeps one until it counts the table again: planned for a table with few rows it
 * reads all of it, dead rows included, of which a queue has thousands a minute. Every table has an index for what is
 * asked of it. Servers before 18 add a large cost to a plan without an index, for which they would compile it.
 */
const servingSettings = { ...settings, enable_seqscan: 'off', jit: 'off' }

/**
 * A release builds indexes, and one of several waits for the others: no deadline of a role ends it. For all else the
 * operator's deadlines stay.
 */
const releaseSettings = { ...settings, statement_timeout: '0', lock_timeout: '0' }

type PoolSettings = {
  connectionString: string
  onConnect: (client: pg.ClientBase) => Promise<void>
}

/**
 * How every pool connects. The settings are one statement on a new connection, and not startup parameters: a pooler
 * refuses a connection that has some it does not know (PgBouncer before 1.20 all `options`).
 */
export const poolSettings = (connectionString: string): PoolSettings => ({
  connectionString,
  onConnect: client => applySettings(client, servingSettings),
})

/** As `poolSettings`, for the release step. */
export const releasePoolSettings = (connectionString: string): PoolSettings => ({
  connectionString,
  onConnect: client => applySettings(client, releaseSettings),
})

async function applySettings(
  client: pg.ClientBase,
  values: Readonly<Record<string, string>>,
): Promise<void> {
  await client.query(
    'select set_config(name, value, false) from unnest($1::text[], $2::text[]) as setting(name, value)',
    [Object.keys(values), Object.values(values)],
  )
}
