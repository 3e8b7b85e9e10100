import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cleanEnvironment } from '#scripts/services/process.ts'

/**
 * What a connection to the keeper begins with. To `join` is to need the
 * services while the connection lasts. To `hold` keeps them for a process that does not connect
 * itself, such as a test runner, until it ends or they are `released`.
 */
export type KeeperRequest = { do: 'join' } | { do: 'hold' | 'release'; pid: number }

/** What the keeper answers to any of them, in one line. */
export type DatabaseUrls = { databaseUrl: string; mongodbUri: string }

/** What a keeper tells the process that started it, until it serves. */
export type KeeperReport =
  | { log: string }
  | { failed: string }
  | { ready: true }
  | { gaveWay: true }

const JOIN_WITHIN_MS = 120_000

/** True when both addresses come from outside: then nothing of ours is needed. */
export function areDatabasesGiven(): boolean {
  return Boolean(process.env['DATABASE_URL'] && process.env['MONGODB_URI'])
}

/** The folder of the one set of services that the tests of this checkout share for this user. */
export function sharedServicesDir(): string {
  const { DATABASE_URL = '', MONGODB_URI = '' } = process.env
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const key = createHash('sha256').update(JSON.stringify([root, DATABASE_URL, MONGODB_URI]))
  const user = process.getuid?.() ?? 'user'
  return join(tmpdir(), `memory-vault-test-${user}-${key.digest('hex').slice(0, 8)}`)
}

/** Where the keeper of a set listens. */
export const controlSocketPath = (dir: string): string => join(dir, 'control')

/**
 * Asks the keeper of the shared services, which is started where none runs. A
 * connection is closed by the kernel when its process ends, however it ends,
 * so the keeper always knows who is left.
 *
 * @throws Error in the services' own words when they cannot start.
 */
export async function requestServices(
  request: KeeperRequest,
): Promise<{ addresses: DatabaseUrls; connection: Socket }> {
  const deadline = Date.now() + JOIN_WITHIN_MS
  while (Date.now() < deadline) {
    const answered = await requestRunningServices(request)
    if (answered) return answered
    await launchKeeper()
  }
  throw new Error(`The services in ${sharedServicesDir()} do not answer`)
}

/** Asks a keeper that runs. @returns undefined when there is none, or none any more. */
export async function requestRunningServices(
  request: KeeperRequest,
): Promise<{ addresses: DatabaseUrls; connection: Socket } | undefined> {
  const connection = connect(controlSocketPath(sharedServicesDir()))
  // A keeper that is killed later on is noticed by whoever uses its services.
  connection.on('error', () => {})
  connection.write(`${JSON.stringify(request)}\n`)
  try {
    let text = ''
    for await (const chunk of connection.iterator({ destroyOnReturn: false })) {
      text += String(chunk)
      if (!text.endsWith('\n')) continue
      return { addresses: JSON.parse(text) as DatabaseUrls, connection: connection.resume() }
    }
  } catch {
    // Nobody listens there, or the one who did is going.
  }
  connection.destroy()
  return undefined
}

/** Starts a keeper. Resolves when it serves, or when it found another at work. */
async function launchKeeper(): Promise<void> {
  const program = fileURLToPath(new URL('keeper.ts', import.meta.url))
  const keeper = spawn(process.execPath, [program], {
    detached: true,
    // Not even our error output: whoever reads that would wait for the keeper to close it.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: cleanEnvironment(),
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  keeper.once('error', reject)
  keeper.once('exit', code => reject(new Error(`The services did not start: exit code ${code}`)))
  keeper.on('message', (report: KeeperReport) => {
    if ('log' in report) process.stderr.write(`${report.log}\n`)
    else if ('failed' in report) reject(new Error(report.failed))
    // The other may still be starting, or just ending.
    else if ('gaveWay' in report) resolve(delay(250))
    else resolve()
  })
  try {
    await promise
  } finally {
    keeper.removeAllListeners()
    if (keeper.connected) keeper.disconnect()
    keeper.unref()
  }
}
