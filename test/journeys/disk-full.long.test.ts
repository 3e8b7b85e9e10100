import pg from 'pg'
import t, { type Test } from 'tap'
import {
  createTestBackend,
  createTestConfig,
  createEmptyDatabase,
} from '#test/support/start/backend.ts'
import { serverError, startMongoDouble } from '#test/support/doubles/mongo-double.ts'
import { launchProcess, processEnvironment } from '#test/support/start/processes.ts'

/* A full disk is named at the start, with what to do; it is no address to check. */

const migrated = async (t: Test, env: Record<string, string>) => {
  const { exited, output } = launchProcess(t, 'node scripts/migrate.ts', env)
  t.equal((await exited).code, 1, output())
  t.match(output(), /No space is left on the disk of a database: free some/)
  t.notMatch(output(), /Check DATABASE_URL|\n\s+at /)
}

t.test('PostgreSQL: 53100', async t => {
  const config = await createTestConfig(t)
  const full = await createEmptyDatabase(t, await createTestBackend(t, { config }))
  const own = new pg.Client({ connectionString: full })
  await own.connect()
  await own.query(`
    create function refuse() returns event_trigger language plpgsql as
      $$ begin raise exception sqlstate '53100' using message = 'could not extend file: No space left on device'; end $$;
    create event trigger full_disk on ddl_command_start execute function refuse()`)
  await own.end()
  await migrated(t, processEnvironment({ ...config, databaseUrl: full }))
})

t.test('MongoDB: OutOfDiskSpace', async t => {
  const config = await createTestConfig(t)
  const double = await startMongoDouble(t, { engine: config.mongodbUri })
  const { rule } = double
  double.rule = (name, command) =>
    name === 'createIndexes' ? serverError(14_031, 'OutOfDiskSpace') : rule(name, command)
  await migrated(t, processEnvironment({ ...config, mongodbUri: double.url }))
})
