import { PgBoss } from 'pg-boss'
import { poolSettings } from '#shared/storage/postgres/session.ts'

export const pgBossSchema = 'pgboss'

/** For processes that take no jobs: without maintenance and without a listening connection. */
export const createIdleBoss = (databaseUrl: string): PgBoss =>
  new PgBoss({
    ...poolSettings(databaseUrl),
    schema: pgBossSchema,
    max: 1,
    migrate: false,
    createSchema: false,
    supervise: false,
    schedule: false,
  })
