import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { createCredentials } from '#scripts/create-credentials.ts'
import { release } from '#scripts/release.ts'
import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig, type Config } from '#shared/core/config.ts'
import { createLog } from '#shared/core/log.ts'

export const log = createLog('error', 'bench')

/**
 * The environment of a migrated service with new databases.
 *
 * @param extra further variables; new databases are made on the servers they name, else on those of this process.
 */
export async function createBenchEnvironment({
  DATABASE_URL = process.env.DATABASE_URL!,
  MONGODB_URI = process.env.MONGODB_URI!,
  ...extra
}: Record<string, string> = {}): Promise<Record<string, string>> {
  const name = `bench_${randomBytes(4).toString('hex')}`
  const admin = new pg.Client({ connectionString: DATABASE_URL })
  await admin.connect()
  await admin.query(`create database ${name}`)
  await admin.end()
  const databaseUrl = new URL(DATABASE_URL)
  databaseUrl.pathname = `/${name}`
  const env = {
    ...(process.env as Record<string, string>),
    DATABASE_URL: databaseUrl.href,
    MONGODB_URI: MONGODB_URI.replace(/\/\w*\?/, `/${name}?`),
    MASTER_KEY: '11'.repeat(32),
    KEY_PEPPER: 'a pepper for benchmarks',
    PORT: '0',
    LOG_LEVEL: 'error',
    RATE_LIMITS: 'off',
    ...extra,
  }
  await release(readConfig(env), log)
  return env
}

/** New databases, and a backend on them for this process; no process of the service runs. */
export async function openBenchService(
  extra: Record<string, string> = {},
): Promise<{ env: Record<string, string>; config: Config; backend: Backend }> {
  const env = await createBenchEnvironment(extra)
  const config = readConfig(env)
  return { env, config, backend: await openBackend(config, log, 'web') }
}

/** A Memory Key with an empty vault. */
export async function createBenchKey(
  { postgres }: Pick<Backend, 'postgres'>,
  { keyPepper }: Config,
): Promise<string> {
  const credentials = await postgres.transaction(tx =>
    createCredentials(tx, keyPepper, {
      email: `${randomBytes(4).toString('hex')}@example.com`,
      keyName: 'bench',
      keyLifetimeDays: null,
      adminLifetimeDays: null,
      paymentMethod: 'card',
      balance: null,
    }),
  )
  return credentials.memoryKey
}

/** The words of the demo's conversation, most frequent first: real words have realistic tokens and stems. */
const vocabulary = wordsByFrequency(
  readFileSync(new URL('../../clients/demo/conversation.jsonl', import.meta.url), 'utf8'),
)

/** A sentence with a word frequency distribution like that of real language. */
export function randomSentence(words: number, next: () => number): string {
  const word = (): string => vocabulary[Math.floor(vocabulary.length ** next()) - 1]!
  return `${Array.from({ length: words }, word).join(' ')}.`
}

function wordsByFrequency(text: string): string[] {
  const counts = new Map<string, number>()
  for (const [word] of text.matchAll(/\p{L}{2,}/gu)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, 2_000)
    .map(([word]) => word)
}
