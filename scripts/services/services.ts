import { existsSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'
import { dirOfOther, dirUnavailable } from '#scripts/services/private-dir.ts'
import { Refusal } from '#shared/core/errors.ts'
import { acquireLock } from './file-lock.ts'
import { startMongodb } from './mongodb.ts'
import { startPostgres } from './postgres.ts'
import type { LineLogger, DatabaseServer } from './process.ts'

export type DatabaseServices = {
  databaseUrl: string
  mongodbUri: string
  /** The main process of each; undefined for an external server. */
  pids: { postgres: number | undefined; mongodb: number | undefined }
  /** Resolves with a description when a service ends without a call of `stop`. */
  unexpectedExit: Promise<string>
  /** Ends both services; a second call waits for the first. External servers are not ended. */
  stop(): Promise<void>
}

/** The state file of running services, for other processes. */
type ServicesState = { pid: number; databaseUrl?: string; mongodbUri?: string }

/** A process that only tests whether the folder is in use has the lock for a moment. */
const LOCK_WAIT_MS = 500

/**
 * What shares a machine with its stores is as slow as they are: a first request on a busy one was answered
 * 503 after the five seconds that a store elsewhere has.
 */
const postgresDeadlines = '&connect_timeout=10&query_timeout=30000'
const mongodbDeadlines =
  '&connectTimeoutMS=10000&serverSelectionTimeoutMS=10000&socketTimeoutMS=30000'

/**
 * Starts PostgreSQL and MongoDB embedded in a data folder, or takes over a
 * PostgreSQL that a killed launcher left running. When this process ends
 * without `stop`, MongoDB ends too and the next start takes over PostgreSQL.
 * With both URLs in the options nothing is started and the folder is not used.
 *
 * @throws Refusal `conflict` when another process uses this folder; `unavailable` when a service
 *   cannot run here or does not start, with a hint what to do. Nothing stays running.
 */
export async function startServices(options: {
  /** Created if it is missing, with mode 0700. */
  dataDir: string
  log: LineLogger
  /** Trades safety against power cuts for speed, and allows 200 connections instead of 100. */
  forTests?: boolean
  /** The URL of an external server: none is started, and the URL is returned unchanged. */
  databaseUrl?: string | undefined
  mongodbUri?: string | undefined
}): Promise<DatabaseServices> {
  const { databaseUrl, mongodbUri } = options
  const dataDir = resolve(options.dataDir)
  const unlock = databaseUrl && mongodbUri ? () => {} : await lockDataDir(dataDir)

  const results = await Promise.allSettled([
    databaseUrl ? externalServer(databaseUrl) : startPostgres(dataDir, options),
    mongodbUri ? externalServer(mongodbUri) : startMongodb(dataDir, options),
  ])
  const stopAll = async () => {
    const running = results.flatMap(part => (part.status === 'fulfilled' ? [part.value] : []))
    await Promise.all(running.map(service => service.stop())).finally(unlock)
  }

  const [postgres, mongodb] = results
  if (postgres.status === 'rejected' || mongodb.status === 'rejected') {
    await stopAll()
    throw results.find(part => part.status === 'rejected')?.reason
  }
  const withDeadlines = !options.forTests
  const urls = {
    databaseUrl: postgres.value.url + (withDeadlines && !databaseUrl ? postgresDeadlines : ''),
    mongodbUri: mongodb.value.url + (withDeadlines && !mongodbUri ? mongodbDeadlines : ''),
  }
  if (!databaseUrl || !mongodbUri) writeState(dataDir, { pid: process.pid, ...urls })

  const pids = { postgres: postgres.value.pid, mongodb: mongodb.value.pid }
  let stopping: Promise<void> | undefined
  const unexpectedExit = Promise.race([postgres.value.unexpectedExit, mongodb.value.unexpectedExit])
  return { ...urls, pids, unexpectedExit, stop: () => (stopping ??= stopAll()) }
}

/**
 * Returns the URLs of the services that another process runs in a data folder.
 *
 * @returns undefined when none run, or they are not ready yet.
 */
export function readRunningServices(
  dataDir: string,
): { databaseUrl: string; mongodbUri: string } | undefined {
  if (!existsSync(lockPath(dataDir))) return undefined
  const unlock = acquireLock(lockPath(dataDir), 0)
  unlock?.()
  const { databaseUrl, mongodbUri } = readState(dataDir)
  return !unlock && databaseUrl && mongodbUri ? { databaseUrl, mongodbUri } : undefined
}

/** Stands for an external server, which is neither watched nor stopped here. */
function externalServer(url: string): DatabaseServer {
  return { url, pid: undefined, unexpectedExit: new Promise(() => {}), stop: async () => {} }
}

/** Creates the folder and locks it for this process. @returns a function that releases the lock. */
async function lockDataDir(dataDir: string): Promise<() => void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw dirUnavailable(error)
  })
  const { uid } = await stat(dataDir)
  const self = process.getuid?.() ?? uid
  if (self !== 0 && self !== uid) throw dirOfOther(dataDir, uid, self)

  const unlock = acquireLock(lockPath(dataDir), LOCK_WAIT_MS)
  if (!unlock) {
    const { pid } = readState(dataDir)
    const message = `${dataDir} is in use by ${pid ? `process ${pid}` : 'another process'}`
    throw new Refusal('conflict', message, 'Stop that one, or choose another DATA_DIR.')
  }
  writeState(dataDir, { pid: process.pid })
  return () => {
    rmSync(statePath(dataDir), { force: true })
    unlock()
  }
}

const lockPath = (dataDir: string) => join(dataDir, 'services.lock')
const statePath = (dataDir: string) => join(dataDir, 'services.json')

function readState(dataDir: string): Partial<ServicesState> {
  try {
    return JSON.parse(readFileSync(statePath(dataDir), 'utf8')) as ServicesState
  } catch {
    return {}
  }
}

/** Writes the state file with mode 0600, because the URLs contain passwords. */
function writeState(dataDir: string, state: ServicesState): void {
  writePrivateFile(statePath(dataDir), JSON.stringify(state))
}
