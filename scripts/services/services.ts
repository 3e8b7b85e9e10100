import { existsSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'
import { Refusal } from '#shared/core/errors.ts'
import { acquireLock } from './file-lock.ts'
import { startMongodb } from './mongodb.ts'
import { startPostgres } from './postgres.ts'
import type { LineLogger, DatabaseServer } from './process.ts'

export type DatabaseServices = {
  databaseUrl: string
  mongodbUri: string
  /** The first process of each, for who wants to see it killed; undefined for a given one. */
  pids: { postgres: number | undefined; mongodb: number | undefined }
  /** Resolves with what is known when a service ends without having been told to. */
  unexpectedExit: Promise<string>
  /** Ends what was started, both at once; a second call waits for the first. */
  stop(): Promise<void>
}

export type StartOptions = {
  /** Made where it is missing, open to its owner only. */
  dataDir: string
  log: LineLogger
  /** Trades safety against power cuts for speed, and allows 200 connections instead of 100. */
  forTests?: boolean
  /** A service that runs elsewhere is not started; its address comes back as given. */
  databaseUrl?: string | undefined
  mongodbUri?: string | undefined
}

/** What a running set of services writes down for those who come later. */
type ServicesState = { pid: number; databaseUrl?: string; mongodbUri?: string }

/** Who only looks whether the folder is in use holds its lock for a moment. */
const LOCK_WAIT_MS = 500

/**
 * Starts PostgreSQL and MongoDB embedded in a data folder, or finds them as a
 * killed launcher left them. What was stored is there again at the next start.
 * When this process ends without a `stop`, MongoDB ends with it and PostgreSQL
 * is taken over by the next start. With both addresses given nothing is touched.
 *
 * @throws Refusal `conflict` when another process serves this folder; `unavailable` when a service
 *   cannot run here, with a hint that says what to set instead. Nothing is left running.
 * @throws Error with a server's own words when it does not start.
 */
export async function startServices(options: StartOptions): Promise<DatabaseServices> {
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
  const urls = { databaseUrl: postgres.value.url, mongodbUri: mongodb.value.url }
  if (!databaseUrl || !mongodbUri) writeState(dataDir, { pid: process.pid, ...urls })

  const pids = { postgres: postgres.value.pid, mongodb: mongodb.value.pid }
  let stopping: Promise<void> | undefined
  const died = Promise.race([postgres.value.unexpectedExit, mongodb.value.unexpectedExit])
  return { ...urls, pids, unexpectedExit: died, stop: () => (stopping ??= stopAll()) }
}

/**
 * The services that another process has running in a data folder, for scripts
 * that work beside it. Undefined when there are none, or none ready yet.
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

/** A service that someone else runs: it is neither watched nor stopped here. */
function externalServer(url: string): DatabaseServer {
  return { url, pid: undefined, unexpectedExit: new Promise(() => {}), stop: async () => {} }
}

/** Makes the folder this process's own, until what is returned is called. */
async function lockDataDir(dataDir: string): Promise<() => void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new Refusal('unavailable', error.message, 'Choose another DATA_DIR.')
  })
  const { uid } = await stat(dataDir)
  const self = process.getuid?.() ?? uid
  if (self !== 0 && self !== uid) {
    const message = `${dataDir} belongs to user ${uid}, this is user ${self}`
    throw new Refusal('unavailable', message, 'Start as that user, or choose another DATA_DIR.')
  }

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

/** Addresses carry a password: nobody else may read them. */
function writeState(dataDir: string, state: ServicesState): void {
  writePrivateFile(statePath(dataDir), JSON.stringify(state))
}
