import { PgBoss } from 'pg-boss'

export const pgBossSchema = 'pgboss'

/** For processes that take no jobs: without maintenance and without a listening connection. */
export const createIdleBoss = (databaseUrl: string): PgBoss =>
  new PgBoss({
    connectionString: databaseUrl,
    schema: pgBossSchema,
    max: 1,
    migrate: false,
    createSchema: false,
    supervise: false,
    schedule: false,
  })
