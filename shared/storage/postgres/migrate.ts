import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runner } from 'node-pg-migrate'
import pg from 'pg'
import { Refusal } from '#shared/core/errors.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { refuseWhenUnreachable } from '#shared/storage/postgres/server-errors.ts'
import { releasePoolSettings } from '#shared/storage/postgres/session.ts'

const migrationsDir = fileURLToPath(new URL('./migrations', import.meta.url))

/** Any number that no other program locks. */
const migrationLock = 7_241_865_325

/**
 * Applies the numbered files of `migrations/` that this database does not have, in one transaction
 * each, under an advisory lock: of several processes that start together one works, the others
 * wait.
 *
 * @returns the names applied by this call.
 * @throws Refusal `unavailable` when the database is out of reach, or the user may not create in it.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const pool = new pg.Pool({ ...releasePoolSettings(databaseUrl), max: 2 })
  pool.on('error', () => {})
  try {
    return await underLock(pool, async () => {
      const dbClient = await pool.connect()
      return applyAll(dbClient).finally(() => dbClient.release(true))
    })
  } catch (error) {
    await requireGrants(pool, error)
    return refuseWhenUnreachable(error)
  } finally {
    await pool.end()
  }
}

/**
 * Requests go on meanwhile. A migration that waited for a table would have every request for its other tables wait behind
 * it, or would end some as the victim of a deadlock: before Postgres looks for one it gives its tables back, and tries again.
 */
async function applyAll(dbClient: pg.PoolClient): Promise<string[]> {
  const one = { direction: 'up', count: 1, singleTransaction: true } as const
  const options = { ...one, dir: migrationsDir, migrationsTable: 'migrations', noLock: true }
  const applied: string[] = []
  await dbClient.query(`set lock_timeout = '300ms'`)
  for (;;) {
    try {
      const next = await runner({ ...options, dbClient, log: () => {} })
      if (next.length === 0) return applied
      applied.push(next[0]!.name)
    } catch (error) {
      if (!/^(?:55P03|40P01)$/.test(String((error as { code?: unknown }).code))) throw error
      await delay(500 * Math.random())
    }
  }
}

/**
 * Names the rights that the user lacks to create tables and the schema of the queue; since PostgreSQL 15 no user has
 * them by default. The error of node-pg-migrate has no code.
 *
 * @throws Refusal `unavailable` when there are such.
 */
async function requireGrants(pool: pg.Pool, cause: unknown): Promise<void> {
  const { rows } = await pool
    .query<{ missing: string }>(
      `select format('grant create on database %I to %I;', current_database(), current_user) as missing
       where not has_database_privilege(current_database(), 'create') and to_regnamespace('pgboss') is null
       union all
       select format('grant usage, create on schema public to %I;', current_user)
       where not (has_schema_privilege('public', 'usage') and has_schema_privilege('public', 'create'))`,
    )
    .catch(() => ({ rows: [] }))
  if (rows.length === 0) return
  throw new Refusal(
    'unavailable',
    'The user of DATABASE_URL may not create what the service needs',
    `The owner of the database runs: ${rows.map(({ missing }) => missing).join(' ')}`,
    cause,
  )
}

/**
 * Runs `work` while a transaction holds the lock. The lock of a session, which node-pg-migrate would take, stays with a
 * connection of the server: behind a pooler in transaction mode it is never released, and every later release waits.
 */
async function underLock<Result>(pool: pg.Pool, work: () => Promise<Result>): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('set local idle_in_transaction_session_timeout = 0')
    await client.query('select pg_advisory_xact_lock($1)', [migrationLock])
    return await work()
  } finally {
    // Ends the transaction, whatever became of it.
    client.release(true)
  }
}

/**
 * The migrations of this version that the database lacks: the process was started before the
 * release step.
 */
export async function pendingMigrations(query: Query): Promise<string[]> {
  const { rows } = await query<{ name: string }>('select name from migrations')
  const applied = new Set(rows.map(({ name }) => name))
  return readdirSync(migrationsDir)
    .map(file => basename(file, '.sql'))
    .filter(name => !applied.has(name))
}
