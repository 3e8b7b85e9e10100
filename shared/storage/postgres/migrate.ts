import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runner } from 'node-pg-migrate'
import { refuseWhenUnreachable, type Query } from '#shared/storage/postgres/connect.ts'

const migrationsDir = fileURLToPath(new URL('./migrations', import.meta.url))

/**
 * Applies the numbered files of `migrations/` that this database does not have, in one transaction
 * each, under an advisory lock: of several processes that start together one works, the others
 * wait.
 *
 * @returns the names applied by this call.
 * @throws Refusal `unavailable` when the database is out of reach.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const applied = await runner({
    databaseUrl,
    dir: migrationsDir,
    direction: 'up',
    migrationsTable: 'migrations',
    advisoryLockMode: 'wait',
    log: () => {},
  }).catch(refuseWhenUnreachable)
  return applied.map(({ name }) => name)
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
