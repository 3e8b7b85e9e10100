import { fileURLToPath } from 'node:url'
import { runner } from 'node-pg-migrate'

/**
 * Applies the numbered files of `migrations/` that this database has not seen, in one transaction
 * each, under an advisory lock: of several processes starting together one works, the others wait.
 *
 * @returns the names applied by this call.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const applied = await runner({
    databaseUrl,
    dir: fileURLToPath(new URL('./migrations', import.meta.url)),
    direction: 'up',
    migrationsTable: 'migrations',
    advisoryLockMode: 'wait',
    log: () => {},
  })
  return applied.map(({ name }) => name)
}
