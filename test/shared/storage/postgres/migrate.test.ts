import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { migrate } from '#shared/storage/postgres/migrate.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import { hashMigrations, readReleaseFacts } from '#test/upgrade/release-dump.ts'

const { databaseUrl } = await createTestConfig(t)
const client = new pg.Client({ connectionString: databaseUrl })
await client.connect()
t.teardown(() => client.end())

const files = readdirSync('shared/storage/postgres/migrations')
  .map(file => basename(file, '.sql'))
  .sort()

/** Everything that the migrations have made, and the rows that they have written. */
async function readSchema(): Promise<unknown> {
  const { rows } = await client.query(
    `select attrelid::regclass::text as owner, attname as name,
       concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid)) as text
     from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
     where attrelid in (select oid from pg_class where relnamespace = 'public'::regnamespace)
     union all select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
     where connamespace = 'public'::regnamespace
     union all select tablename, indexname, indexdef from pg_indexes where schemaname = 'public'
     union all select tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) from pg_trigger
     where not tgisinternal
     union all select '', proname, pg_get_functiondef(oid) from pg_proc
     where pronamespace = 'public'::regnamespace
     union all select 'migrations', name, run_on::text from migrations
     union all select 'usage_rolled', '', before::text from usage_rolled
     union all select 'usage_accounts_rolled', '', before::text from usage_accounts_rolled
     order by 1, 2, 3`,
  )
  return rows
}

t.test('an empty database gets each migration once; a second run changes nothing', async t => {
  await client.query('drop schema public cascade')
  await client.query('create schema public')
  const runs = await Promise.all([migrate(databaseUrl), migrate(databaseUrl)])
  t.same(runs.flat(), files, 'of two processes that start together one applies them')
  const schema = await readSchema()
  t.same(await migrate(databaseUrl), [])
  t.same(await readSchema(), schema)
})

t.test('released migrations stay as they are', t => {
  const hashes = hashMigrations()
  for (const [file, hash] of Object.entries(readReleaseFacts().migrations)) {
    t.equal(hashes[file], hash, `${file} was released: a change of the schema is a further file`)
  }
  t.end()
})
