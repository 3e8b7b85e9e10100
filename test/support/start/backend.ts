import '#test/setup/env.ts'
import '#test/support/checks/watch-scopes.ts'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'
import { releaseMongo } from '#scripts/release.ts'
import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig, type Config } from '#shared/core/config.ts'
import { createLog } from '#shared/core/log.ts'
import { defaultQueuePace, type QueuePace } from '#shared/storage/queue/due-queues.ts'
import { createDatabase } from '#test/support/start/template-database.ts'

/** The one of the service, for tests of what takes too long. */
export const defaultRecallTimeout = { RECALL_TIMEOUT_MS: '1500' }

/** Jobs that become due are found at once, so that no test waits for the second of the service. */
const quickPace: QueuePace = { ...defaultQueuePace, lookEveryMs: 50 }

const log = createLog(process.env.LOG_LEVEL ?? 'silent', 'test')

/** A configuration with new databases; Postgres is a copy of the released template. */
export async function createTestConfig(t: Test, env: Record<string, string> = {}): Promise<Config> {
  const name = `vault_test_${randomBytes(6).toString('hex')}`
  const admin = new pg.Client({ connectionString: process.env.DATABASE_URL })
  await admin.connect()
  await createDatabase(admin, name)
  t.teardown(async () => {
    await admin.query(`drop database if exists ${name} with (force)`)
    await admin.end()
  })
  const databaseUrl = new URL(process.env.DATABASE_URL!)
  databaseUrl.pathname = `/${name}`
  const mongodbUri = process.env.MONGODB_URI!.replace(/\/\w*\?/, `/${name}?`)
  const config = readConfig({
    DATABASE_URL: databaseUrl.href,
    MONGODB_URI: mongodbUri,
    MASTER_KEY: '11'.repeat(32),
    KEY_PEPPER: 'a pepper for tests',
    PORT: '0',
    LOG_LEVEL: process.env.LOG_LEVEL ?? 'silent',
    RATE_LIMITS: 'off',
    ORG_GATHER_SECONDS: '0',
    // A machine that is busy with other tests can stand still for longer than the 1.5 s of the service.
    RECALL_TIMEOUT_MS: '20000',
    ...env,
  })
  await releaseMongo(config, log)
  return config
}

/** An empty database beside that of a test, in which nothing was released. @returns its address */
export async function createEmptyDatabase(
  t: Test,
  { config, postgres }: Pick<Backend, 'config' | 'postgres'>,
): Promise<string> {
  const address = new URL(config.databaseUrl)
  const name = `${address.pathname.slice(1)}_empty`
  await postgres.query(`create database ${name}`)
  t.teardown(() => postgres.query(`drop database if exists ${name} with (force)`))
  address.pathname = `/${name}`
  return address.href
}

/** A migrated backend with new databases, closed at the end of the test. */
export async function createTestBackend(
  t: Test,
  {
    env = {},
    config,
    queuePace = quickPace,
  }: { env?: Record<string, string>; config?: Config; queuePace?: QueuePace } = {},
): Promise<Backend> {
  const backend = await openBackend(
    config ?? (await createTestConfig(t, env)),
    log,
    'worker',
    queuePace,
  )
  t.teardown(() => backend.close())
  return backend
}
