import { readlinkSync, readFileSync, realpathSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { Refusal } from '#shared/core/errors.ts'
import { isAlive } from './process.ts'

/** What a PostgreSQL server writes about itself into its data folder, as postmaster.pid. */
export type Postmaster = {
  pid: number
  port: number
  /** True once it accepts connections. */
  isReady: boolean
}

const ORPHAN_TIMEOUT_MS = 60_000
const CONNECT_TIMEOUT_MS = 5_000

/** @returns undefined when no server has written there, or not all of it yet. */
export async function readPostmasterFile(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')
  const [pid, , , port, , , , status = ''] = text.split('\n')
  if (!pid || !port) return undefined
  return { pid: Number(pid), port: Number(port), isReady: status.trim() === 'ready' }
}

/**
 * Finds a server that a killed launcher left on this data, and waits until it
 * serves or is gone. A server that was killed leaves a file with a process id
 * that is anyone's by now, or a zombie's, and the next server would give way to it: it is removed.
 *
 * @returns undefined when no server is left and a new one can start.
 * @throws Refusal `unavailable` when a process holds the data for a minute without serving it.
 */
export async function findOrphanedServer(data: string): Promise<Postmaster | undefined> {
  const deadline = Date.now() + ORPHAN_TIMEOUT_MS
  for (;;) {
    const postmaster = await readPostmasterFile(data)
    if (!postmaster) return undefined
    if (!isAlive(postmaster.pid) || !isServerOfDataDir(postmaster.pid, data)) {
      // Children that live on are not forgotten by this: they hold the shared memory of the data.
      await rm(join(data, 'postmaster.pid'), { force: true })
      return undefined
    }
    if (postmaster.isReady) return postmaster
    if (Date.now() > deadline) {
      const message = `Process ${postmaster.pid} holds ${data} and does not become ready`
      throw new Refusal('unavailable', message, 'End that process, then start again.')
    }
    await delay(50)
  }
}

/** Whether a process is the server of this data, as far as the platform lets us see. */
function isServerOfDataDir(pid: number, data: string): boolean {
  if (process.platform !== 'linux') return true
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(data)
  } catch {
    // In a container even root may not look that closely; the name can always be read.
  }
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres'
  } catch {
    return false
  }
}

/**
 * Makes sure that a server answers under our password, and that the database exists.
 *
 * @param url of the server's own database; the new one is named beside it.
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
    const found = await client.query('select 1 from pg_database where datname = $1', [name])
    if (found.rowCount === 0) {
      await client.query(`create database ${client.escapeIdentifier(name)}`)
    }
  } finally {
    await client.end()
  }
}
