import { readlinkSync, readFileSync, realpathSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { Refusal } from '#shared/core/errors.ts'
import { isAlive } from './process.ts'

/** The content of postmaster.pid, which a PostgreSQL server writes into its data folder. */
export type Postmaster = {
  pid: number
  port: number
  /** True once it accepts connections. */
  isReady: boolean
}

const ORPHAN_TIMEOUT_MS = 60_000
const CONNECT_TIMEOUT_MS = 5_000

/** @returns undefined when the file is missing or incomplete. */
export async function readPostmasterFile(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')
  const [pid, , , port, , , , status = ''] = text.split('\n')
  if (!pid || !port) return undefined
  return { pid: Number(pid), port: Number(port), isReady: status.trim() === 'ready' }
}

/**
 * Finds a server that a killed launcher left on this data, and waits until it is
 * ready or has ended. A killed server leaves a file whose process id may now
 * belong to another process or a zombie. A new server would refuse to start
 * because of that file, so it is removed.
 *
 * @returns undefined when no server runs and a new one can start.
 * @throws Refusal `unavailable` when a server uses the data for a minute and does not become ready, or its
 *   file is damaged.
 */
export async function findOrphanedServer(data: string): Promise<Postmaster | undefined> {
  const deadline = Date.now() + ORPHAN_TIMEOUT_MS
  await refuseDamagedPostmasterFile(data)
  for (;;) {
    const postmaster = await readPostmasterFile(data)
    if (!postmaster) return undefined
    if (!isAlive(postmaster.pid) || !isServerOfDataDir(postmaster.pid, data)) {
      // Remaining child processes still block a new server, by the shared memory of the data.
      await rm(join(data, 'postmaster.pid'), { force: true })
      return undefined
    }
    if (postmaster.isReady) return postmaster
    if (Date.now() > deadline) {
      const message = `Process ${postmaster.pid} uses ${data} and does not become ready`
      throw new Refusal('unavailable', message, 'End that process, then start again.')
    }
    await delay(50)
  }
}

/** A server that starts writes its file in a moment. */
const FILE_WAIT_MS = 1_000

/** Refuses a damaged file: PostgreSQL does not start while it is there, since a server may use the data. */
async function refuseDamagedPostmasterFile(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid')
  const deadline = Date.now() + FILE_WAIT_MS
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => null)
    if (text === null || /^\d+\n/.test(text)) return
    if (Date.now() > deadline) break
    await delay(50)
  }
  throw new Refusal(
    'unavailable',
    `${file} is damaged: its first line is no process id`,
    'Delete it when no PostgreSQL runs on this folder, then start again.',
  )
}

/** Returns whether a process is the server of this data, as far as the platform shows it. */
function isServerOfDataDir(pid: number, data: string): boolean {
  if (process.platform !== 'linux') return true
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(data)
  } catch {
    // In a container even root may lack the right to read this link; the name is always readable.
  }
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres'
  } catch {
    return false
  }
}

/**
 * Checks that a server accepts the password, and creates the database if it is missing.
 *
 * @param url the URL of the database `postgres` of that server.
 * @param name the database to create.
 */
export async function ensureDatabase(url: string, name: string): Promise<void> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
  })
  // A connection lost between two statements must not end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    const existing = await client.query('select 1 from pg_database where datname = $1', [name])
    if (existing.rowCount === 0) {
      await client.query(`create database ${client.escapeIdentifier(name)}`)
    }
  } finally {
    await client.end()
  }
}
