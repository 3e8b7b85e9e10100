import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import t, { type Test } from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import {
  installedVersions,
  pgbouncerPath,
  startDebianPostgres,
  superuserPassword,
  type DebianPostgres,
} from '#test/support/start/debian-postgres.ts'
import {
  launchProcess,
  processEnvironment,
  startWeb,
  startWorker,
} from '#test/support/start/processes.ts'

/**
 * The smallest journey on servers as people have them: a private certificate, a user who owns nothing, German dates,
 * a pooler. What is not installed here is skipped: `apt-get install postgresql-15 pgbouncer`.
 */

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const base = await createTestConfig(t)
const userPassword = 'another-password'

const run = async (t: Test, command: string, env: Record<string, string>) => {
  const launched = launchProcess(t, command, env)
  return { ...(await launched.exited), output: launched.output() }
}

const configOf = (databaseUrl: string) => ({ ...base, databaseUrl })
const envOf = (databaseUrl: string) => processEnvironment(configOf(databaseUrl))

/** A database in which an ordinary user may do nothing yet. */
async function createDatabase(
  { port }: DebianPostgres,
  name: string,
): Promise<() => Promise<void>> {
  const asSuperuser = async (database: string, ...statements: string[]): Promise<void> => {
    const connectionString = `postgres://postgres:${superuserPassword}@127.0.0.1:${port}/${database}?sslmode=no-verify`
    const client = new pg.Client({ connectionString })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  await asSuperuser(
    'postgres',
    `do $$ begin create role app login password '${userPassword}'; exception when duplicate_object then end $$`,
    `create database ${name} template template0 encoding 'UTF8'`,
    `alter database ${name} set DateStyle to 'German'`,
    `alter database ${name} set IntervalStyle to 'sql_standard'`,
    `alter database ${name} set TimeZone to 'Asia/Kolkata'`,
    `revoke create on database ${name} from public`,
  )
  // Up to version 14 everyone may.
  await asSuperuser(name, 'revoke create on schema public from public')
  return () =>
    asSuperuser(
      name,
      `grant create on database ${name} to app`,
      'grant usage, create on schema public to app',
    )
}

/** Release, account, ingest, search, checkout, keys. */
async function walk(t: Test, databaseUrl: string): Promise<string> {
  const env = envOf(databaseUrl)
  const released = await run(t, 'node scripts/migrate.ts', env)
  t.match(released, {
    code: 0,
    output: /^Found PostgreSQL 1\d\..*, MongoDB \d.*, embedding model local$/m,
  })
  const created = 'node scripts/create-account.ts --email me@example.com --json'
  const { stdout } = await execute(process.execPath, created.split(' ').slice(1), {
    env,
    cwd: root,
  })
  const { memory_key: key } = JSON.parse(stdout) as { memory_key: string }
  const [web, worker] = await Promise.all([
    startWeb(t, configOf(databaseUrl)),
    startWorker(t, configOf(databaseUrl)),
  ])
  const api = createTestClient(web.base, key)
  const timestamp = '2025-07-24T14:00:00.000Z'
  const walkRound = async (round: number): Promise<void> => {
    const content = `Locker ${round} holds the kettle ${round}.`
    const messages = [{ role: 'user', content, timestamp }]
    const stored = await api.post('/v1/memory/ingest?wait=true', { messages })
    t.equal(stored.status, 200, JSON.stringify(stored.body))
    const found = await api.post('/v1/memory/search', { query: `kettle ${round}`, limit: 1 })
    t.match(found, { status: 200, body: { memories: [{ content, timestamp }] } })
  }
  // At once, so that a pooler gives them different connections.
  await Promise.all(Array.from({ length: 24 }, (_, round) => walkRound(round)))
  t.equal((await api.post('/v1/memory/consolidate/checkout', { tier: 1 })).status, 200)
  t.equal((await api.post('/v1/keys', {})).status, 201)
  t.match(await api.get('/v1/keys'), { status: 200, body: { items: [{ created_at: /^20.*Z$/ }] } })
  t.equal((await api.get('/v1/operations')).status, 200)
  const ready = await api.get('/health/ready')
  t.equal(ready.status, 200)
  for (const process of [web, worker]) {
    process.kill('SIGTERM')
    t.match(await process.exited, { code: 0 }, process.output())
  }
  return JSON.stringify(ready.body)
}

if (installedVersions().length === 0)
  t.test('PostgreSQL of Debian', { skip: 'not installed' }, () => {})

for (const version of installedVersions()) {
  t.test(`PostgreSQL ${version}`, async t => {
    const server = await startDebianPostgres(t, version)
    const grant = await createDatabase(server, 'vault')
    const at = (port: number, query = '') =>
      `postgres://app:${userPassword}@127.0.0.1:${port}/vault${query}`
    for (const [query, said] of [
      ['', /check DATABASE_URL/],
      ['?sslmode=require', /sslrootcert=.*sslmode=no-verify/s],
      [
        '?sslmode=no-verify',
        /grant create on database vault to app; grant usage, create on schema/,
      ],
    ] as const) {
      const refused = await run(t, 'node scripts/migrate.ts', envOf(at(server.port, query)))
      t.match(refused, { code: 1, output: said }, refused.output)
      t.notMatch(refused.output, /\n\s+at /)
    }
    await grant()
    const trusted = `?sslmode=verify-full&sslrootcert=${server.caFile}`
    await t.test('directly', async t => {
      t.notMatch(await walk(t, at(server.port, trusted)), /limitations/)
    })
    for (const mode of ['session', 'transaction'] as const) {
      const skip = pgbouncerPath ? false : 'PgBouncer is not installed'
      await t.test(`through PgBouncer in ${mode} mode`, { skip }, async t => {
        const users = { app: userPassword }
        const ready = await walk(t, at(await server.startPgBouncer(mode, users), trusted))
        t.equal(/limitations/.test(ready), mode === 'transaction', ready)
      })
    }
  })
}
