import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cleanEnvironment } from '#scripts/services/process.ts'

/**
 * The first line of a connection to the keeper, which uses the services while it is open. What `lingers` leaves
 * the services for a while after its end, to be used by a next run.
 */
export type KeeperRequest = { lingers: boolean }

/** The keeper's answer to every request, in one line; the services are processes below its own. */
export type DatabaseUrls = { databaseUrl: string; mongodbUri: string; pid: number }

/** Messages of a keeper to its parent process until it is ready. */
export type KeeperReport =
  | { log: string }
  | { failed: string }
  | { ready: true }
  | { gaveWay: true }

const JOIN_WITHIN_MS = 600_000

/** True when the environment has both URLs: then the shared services are not used. */
export function areDatabasesGiven(): boolean {
  return Boolean(process.env['DATABASE_URL'] && process.env['MONGODB_URI'])
}

/** The folder of the services that all tests of this checkout and user share. */
export function sharedServicesDir(): string {
  const { DATABASE_URL = '', MONGODB_URI = '' } = process.env
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const key = createHash('sha256').update(JSON.stringify([root, DATABASE_URL, MONGODB_URI]))
  const user = process.getuid?.() ?? 'user'
  return join(servicesRoot(), `memory-vault-test-${user}-${key.digest('hex').slice(0, 8)}`)
}

/** More than a run has on disk at any time, by far. */
const memoryDiskBytes = 4 * 2 ** 30

/**
 * The folder for temporary files that lies in memory, where there is one; otherwise, and where TMPDIR is set, the
 * usual one. A database of a test is 700 files: ext4 takes 0.1 to 0.4 s of CPU to create them shortly after others were
 * deleted, memory 0.02 s.
 */
function servicesRoot(): string {
  const memoryDisk = '/dev/shm'
  if (process.env['TMPDIR']) return tmpdir()
  try {
    const { blocks, bsize } = statfsSync(memoryDisk)
    if (blocks * bsize >= memoryDiskBytes) return memoryDisk
  } catch {
    // A system without it.
  }
  return tmpdir()
}

/** The Unix socket of the keeper. */
export const controlSocketPath = (dir: string): string => join(dir, 'control')

/**
 * Sends a request to the keeper, and starts a keeper if none runs. The kernel
 * closes a connection when its process ends, also by a crash, so the keeper
 * always knows its users.
 *
 * @throws Error with the message of the services when they cannot start.
 */
export async function requestServices(
  request: KeeperRequest,
): Promise<{ addresses: DatabaseUrls; connection: Socket }> {
  const deadline = Date.now() + JOIN_WITHIN_MS
  while (Date.now() < deadline) {
    const response = await requestRunningServices(request)
    if (response) return response
    await launchKeeper()
  }
  throw new Error(`The services in ${sharedServicesDir()} do not answer`)
}

/** Sends a request to a running keeper. @returns undefined when none runs or it is stopping. */
async function requestRunningServices(
  request: KeeperRequest,
): Promise<{ addresses: DatabaseUrls; connection: Socket } | undefined> {
  const connection = connect(controlSocketPath(sharedServicesDir()))
  // A test notices a killed keeper by its lost database connections.
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
    // No keeper listens, or it is stopping.
  }
  connection.destroy()
  return undefined
}

/** Starts a keeper. Resolves when it is ready, or when another keeper runs. */
async function launchKeeper(): Promise<void> {
  const program = fileURLToPath(new URL('keeper.ts', import.meta.url))
  const keeper = spawn(process.execPath, [program], {
    detached: true,
    // No stderr either: a reader of the test's stderr would wait for the keeper to close it.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: cleanEnvironment(),
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  keeper.once('error', reject)
  keeper.once('exit', code => reject(new Error(`The services did not start: exit code ${code}`)))
  keeper.on('message', (report: KeeperReport) => {
    if ('log' in report) process.stderr.write(`${report.log}\n`)
    else if ('failed' in report) reject(new Error(report.failed))
    // The other keeper may still be starting, or stopping.
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
