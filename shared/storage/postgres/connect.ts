import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Refusal } from '#shared/core/errors.ts'
import { retryConflicts } from '#shared/storage/postgres/retry-conflicts.ts'
import { poolSettings } from '#shared/storage/postgres/session.ts'

/** Runs one statement, on the pool or in a transaction. `name` prepares it once per connection. */
export type Query = <Row extends pg.QueryResultRow = pg.QueryResultRow>(
  text: string,
  values?: readonly unknown[],
  name?: string,
) => Promise<{ rows: Row[]; rowCount: number }>

export type Transaction = { query: Query }

export type Postgres = {
  query: Query
  /**
   * Commits when `work` returns, rolls back when it throws. After a deadlock or a serialization failure
   * `work` runs again, at most 5 times in all: what it does outside the transaction must be safe to repeat.
   * Statements that it begins together travel together and run in their order.
   */
  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>
  /** Holds a connection that listens on a channel; it reconnects by itself until closed. */
  listen(channel: string, onPayload: (payload: string) => void): Promise<{ close(): Promise<void> }>
  /** Connections of the pool right now, and callers waiting for one. */
  connections(): { idle: number; busy: number; waiting: number }
  close(): Promise<void>
}

export type PostgresOptions = { max: number; onError: (error: Error) => void }

/** No request waits longer than this for an answer of the database. */
const queryTimeoutMs = 5_000
/** Nor longer for a connection, where the connection string has no `connect_timeout` of its own. */
const connectTimeoutMs = 2_000
const reconnectDelayMs = 500
/**
 * An idle connection stays this long. After the driver's 10 s a moderate load would close and open
 * connections all the time, and each new one plans every prepared statement again.
 */
const idleTimeoutMs = 5 * 60_000
/** Firewalls forget a silent connection after some minutes, the system's own first sign of life comes after two hours. */
const keepAliveDelayMs = 60_000

/**
 * Opens the pool. A database that cannot be reached or does not answer in time is a Refusal
 * `unavailable`; every other error is the statement's own.
 *
 * @param connectionString its `connect_timeout` (seconds, as libpq has it) bounds the wait for a
 *   connection, two seconds without one.
 */
export function openPostgres(connectionString: string, options: PostgresOptions): Postgres {
  const settings = {
    ...poolSettings(connectionString),
    connectionTimeoutMillis: connectTimeoutOf(connectionString),
    query_timeout: queryTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
  }
  // Statements of a transaction that do not wait for each other travel together.
  const pool = new pg.Pool({
    ...settings,
    max: options.max,
    idleTimeoutMillis: idleTimeoutMs,
    pipeline: true,
  })
  // Without a listener, one dropped idle connection ends the process.
  pool.on('error', options.onError)
  const run = createQuery(pool)

  return {
    query: (text, values, name) => retryConflicts(() => run(text, values, name)),
    transaction: work => retryConflicts(() => runTransaction(pool, work, options.onError)),

    listen: (channel, onNotification) => listen(settings, channel, onNotification, options.onError),
    connections: () => ({
      idle: pool.idleCount,
      busy: pool.totalCount - pool.idleCount,
      waiting: pool.waitingCount,
    }),
    close: () => pool.end(),
  }
}

/** The driver leaves `connect_timeout` of a connection string to libpq. As there, 0 is no bound. */
function connectTimeoutOf(connectionString: string): number {
  const seconds = /[?&]connect_timeout=(\d+)/.exec(connectionString)?.[1]
  return seconds === undefined ? connectTimeoutMs : Number(seconds) * 1000
}

async function runTransaction<Result>(
  pool: pg.Pool,
  work: (tx: Transaction) => Promise<Result>,
  onError: (error: Error) => void,
): Promise<Result> {
  const client = await pool.connect().catch(refuseWhenUnreachable)
  client.on('error', onError)
  let broken: Error | undefined
  try {
    sendTogether(client)
    // Sent with the first statements; it fails only with the connection, and then those fail, too.
    const begun = client.query('begin isolation level read committed')
    begun.catch(() => {})
    const result = await work({ query: createQuery(client) })
    await begun
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => void (broken = failure))
    return refuseWhenUnreachable(error)
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

/** What is sent before this turn ends is one write: the driver would make one of each statement. */
function sendTogether(client: pg.PoolClient): void {
  const { stream } = (client as pg.PoolClient & { connection: { stream: Writable } }).connection
  stream.cork()
  process.nextTick(() => stream.uncork())
}

function createQuery(target: pg.Pool | pg.PoolClient): Query {
  return async (text, values = [], name) => {
    const result = await target
      .query<never>({ text, values: [...values], ...(name && { name }) })
      .catch(refuseWhenUnreachable)
    return { rows: result.rows, rowCount: result.rowCount ?? 0 }
  }
}

async function listen(
  settings: pg.ClientConfig,
  channel: string,
  onNotification: (payload: string) => void,
  onError: (error: Error) => void,
): Promise<{ close(): Promise<void> }> {
  const closing = new AbortController()
  let client: pg.Client
  const connect = async (): Promise<void> => {
    client = new pg.Client(settings)
    client.on('error', onError)
    client.on('notification', message => onNotification(message.payload ?? ''))
    await client.connect()
    await client.query(`listen ${channel}`)
    client.once('end', () => void reconnect())
  }
  const reconnect = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        return await connect()
      } catch (error) {
        onError(error as Error)
        await delay(reconnectDelayMs)
      }
    }
  }
  await connect().catch(refuseWhenUnreachable)
  return {
    async close() {
      closing.abort()
      await client.end()
    },
  }
}

/** Connection failures, administrator shutdown, recovery, a full disk and other lacks, and our own deadlines. */
const unreachableCodes =
  /^(ECONN|EPIPE|ENOTFOUND|ENOENT|EHOSTUNREACH|ETIMEDOUT|EAI_AGAIN|08|57P0|53)/
const unreachableMessages =
  /Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|not queryable|Cannot use a pool/

/** Rethrows an error of a database that is out of reach or did not answer in time, as a Refusal. */
export function refuseWhenUnreachable(error: unknown): never {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  if (unreachableCodes.test(String(code)) || unreachableMessages.test(String(message))) {
    throw new Refusal(
      'unavailable',
      'The database is out of reach',
      'Try again in a few seconds',
      error,
    )
  }
  throw error
}

/** Checks the connection. @throws Refusal `unavailable` when the database is out of reach. */
export const ping = (query: Query): Promise<unknown> => query('select 1')
