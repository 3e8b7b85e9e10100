import type { Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { findPooler, type Pooler } from '#shared/storage/postgres/pooler.ts'
import {
  retryConflicts,
  isAborted,
  isReadOnly,
  isLostStatement,
  refuseWhenUnreachable,
} from '#shared/storage/postgres/server-errors.ts'
import { poolSettings } from '#shared/storage/postgres/session.ts'

/** Runs one statement, on the pool or in a transaction. `name` prepares it once per connection. */
export type Query = <Row extends pg.QueryResultRow = pg.QueryResultRow>(
  text: string,
  values?: readonly unknown[],
  name?: string,
) => Promise<{ rows: Row[]; rowCount: number }>

export type Transaction = { query: Query }

/** A transaction that may end early. */
export type OpenTransaction = Transaction & {
  /** Sends the commit with the statements that have just been begun, instead of after their answers. Call it last. */
  commit(): void
}

export type Postgres = {
  query: Query
  /**
   * Commits when `work` returns, rolls back when it throws. After a deadlock or a serialization failure
   * `work` runs again, at most 5 times in all: what it does outside the transaction must be safe to repeat.
   * Statements that it begins together travel together and run in their order. After one that fails nothing is
   * committed.
   */
  transaction<Result>(work: (tx: OpenTransaction) => Promise<Result>): Promise<Result>
  /**
   * Holds a connection that listens on a channel; it reconnects by itself until closed. Behind a pooler in transaction
   * mode nothing arrives.
   */
  listen(channel: string, onPayload: (payload: string) => void): Promise<{ close(): Promise<void> }>
  /** The pooler between this pool and the server, detected at the first call. */
  pooler(): Promise<Pooler>
  /** Connections of the pool right now, and callers waiting for one. */
  connections(): { idle: number; busy: number; waiting: number }
  close(): Promise<void>
}

export type PostgresOptions = {
  max: number
  onError: (error: Error) => void
  /** Once, when statements are sent without names from now on. */
  onUnnamed?: (error: unknown) => void
}

/**
 * Reads `bigint` as a number. A column whose values may exceed 2^53 must be selected as text.
 *
 * @throws RangeError for a value that a number does not hold exactly.
 */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, text => {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(`The bigint ${text} is no safe integer: select it as text`)
})

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
 * Opens the pool. A database that cannot be reached, does not answer in time or takes no writes is a Refusal
 * `unavailable`; every other error is the statement's own. Where prepared statements are lost, behind a pooler in
 * transaction mode, what failed runs again, and statements of this pool have no names from then on.
 *
 * @param connectionString its `connect_timeout` (seconds, as libpq has it) bounds the wait for a
 *   connection, two seconds without one.
 */
export function openPostgres(connectionString: string, options: PostgresOptions): Postgres {
  const settings = {
    ...poolSettings(connectionString),
    connectionTimeoutMillis: connectTimeoutOf(connectionString),
    query_timeout: queryTimeoutMs,
    types,
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
  let named = true
  let found: Promise<Pooler> | undefined
  const pooler = async (): Promise<Pooler> => {
    if (!named) return 'transaction'
    found ??= findPooler(settings)
    return found.catch((error: unknown) => {
      found = undefined
      return refuseWhenUnreachable(error)
    })
  }
  const run = <Result>(work: () => Promise<Result>): Promise<Result> =>
    retryConflicts(work).catch((error: unknown) => {
      if (isReadOnly(error)) closeIdle(pool)
      if (!isLostStatement(error)) throw error
      if (named) options.onUnnamed?.(error)
      named = false
      return retryConflicts(work)
    })

  return {
    query: (text, values, name) => run(() => createQuery(pool, named)(text, values, name)),
    transaction: work => run(() => runTransaction(pool, named, work, options.onError)),

    async listen(channel, onNotification) {
      if ((await pooler()) === 'transaction') return { close: async () => {} }
      return listen(settings, channel, onNotification, options.onError)
    },
    pooler,
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

/**
 * Closes the connections that are idle: after a failover all lead to the server that takes no writes any more, and
 * new ones to its successor.
 */
function closeIdle(pool: pg.Pool): void {
  for (let count = pool.idleCount; count > 0; count--) {
    void pool.connect().then(
      client => client.release(true),
      () => {},
    )
  }
}

async function runTransaction<Result>(
  pool: pg.Pool,
  named: boolean,
  work: (tx: OpenTransaction) => Promise<Result>,
  onError: (error: Error) => void,
): Promise<Result> {
  const client = await pool.connect().catch(refuseWhenUnreachable)
  client.on('error', onError)
  let broken: Error | undefined
  let firstError: unknown
  let committed: Promise<pg.QueryResult> | undefined
  const commit = (): Promise<pg.QueryResult> => {
    committed ??= client.query('commit')
    committed.catch(() => {})
    return committed
  }
  const query = createQuery(client, named, error => (firstError ??= error))
  try {
    sendTogether(client)
    // Sent with the first statements; it fails only with the connection, and then those fail, too.
    const begun = client.query('begin isolation level read committed')
    begun.catch(() => {})
    const result = await work({ query, commit: () => void commit() })
    const { command } = await commit()
    // The answer to the commit of a transaction in which a statement has failed.
    if (command === 'ROLLBACK') throw firstError
    return result
  } catch (thrown) {
    // The one that failed of statements that travel together may be awaited after those that were not run for it.
    const error = isAborted(thrown) ? firstError : thrown
    await client.query('rollback').catch((failure: Error) => void (broken = failure))
    if (isReadOnly(error)) broken = error as Error
    return refuseWhenUnreachable(error)
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

/** Sends all statements of this tick of the event loop in one write: the driver would make one of each. */
function sendTogether(client: pg.PoolClient): void {
  const { stream } = (client as pg.PoolClient & { connection: { stream: Writable } }).connection
  stream.cork()
  process.nextTick(() => stream.uncork())
}

function createQuery(
  target: pg.Pool | pg.PoolClient,
  named: boolean,
  onError: (error: unknown) => void = () => {},
): Query {
  return async (text, values = [], name) => {
    try {
      const statement = { text, values: [...values], ...(named && name && { name }) }
      const result = await target.query<never>(statement)
      return { rows: result.rows, rowCount: result.rowCount ?? 0 }
    } catch (error) {
      onError(error)
      return refuseWhenUnreachable(error)
    }
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

/**
 * Checks that the database answers and takes writes. One that does not costs the connection, as any error of a
 * statement does, so that the next check finds the server that its name leads to then.
 *
 * @throws Refusal `unavailable`.
 */
export const ping = (query: Query): Promise<unknown> =>
  query(`do $$ begin
    if current_setting('transaction_read_only')::boolean then
      raise 'the database is read-only' using errcode = 'read_only_sql_transaction';
    end if;
  end $$`)
