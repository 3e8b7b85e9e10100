import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startMongodb } from '#scripts/services/mongodb.ts'
import { startPostgres } from '#scripts/services/postgres.ts'
import { isAlive, waitForExit, type DatabaseServer } from '#scripts/services/process.ts'

const execFileAsync = promisify(execFile)

export type StoreName = 'postgres' | 'mongodb'
export const storeNames: readonly StoreName[] = ['postgres', 'mongodb']

const endMs = 60_000

/** Embedded databases whose servers can be stopped, killed, started again at their address, and copied. */
export class Stores {
  readonly #dataDir: string
  readonly #log: (line: string) => void
  readonly #servers = new Map<StoreName, DatabaseServer>()
  readonly #urls = new Map<StoreName, string>()

  private constructor(dataDir: string, log: (line: string) => void) {
    this.#dataDir = dataDir
    this.#log = log
  }

  static async start(dataDir: string, log: (line: string) => void): Promise<Stores> {
    const stores = new Stores(dataDir, log)
    const starts = await Promise.allSettled(storeNames.map(name => stores.begin(name)))
    const failed = starts.find(({ status }) => status === 'rejected')
    if (failed === undefined) return stores
    await stores.stop()
    throw (failed as PromiseRejectedResult).reason
  }

  /** The variables that name these databases. */
  get environment(): { DATABASE_URL: string; MONGODB_URI: string } {
    return { DATABASE_URL: this.#urls.get('postgres')!, MONGODB_URI: this.#urls.get('mongodb')! }
  }

  /** Starts a server that does not run, at the address it had. */
  async begin(name: StoreName): Promise<void> {
    const log = this.#log
    const known = this.#urls.get('postgres')
    const port = known === undefined ? undefined : Number(new URL(known).port)
    const server =
      name === 'postgres'
        ? await startPostgres(this.#dataDir, { log, forTests: true, port })
        : await startMongodb(this.#dataDir, { log })
    this.#servers.set(name, server)
    this.#urls.set(name, server.url)
  }

  /** False once a server has ended by itself, too. */
  runs(name: StoreName): boolean {
    const pid = this.#servers.get(name)?.pid
    return pid !== undefined && isAlive(pid)
  }

  /** Ends a server: in order, or in the middle of whatever it does. */
  async end(name: StoreName, how: 'stop' | 'kill' = 'stop'): Promise<void> {
    const server = this.#servers.get(name)
    if (!server) return
    this.#servers.delete(name)
    if (how === 'kill') {
      try {
        process.kill(server.pid!, 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
      await waitForExit(server.pid!, endMs)
    }
    await server.stop()
  }

  /** Copies the data of a server that does not run. */
  async backUp(name: StoreName, to: string): Promise<void> {
    await copyFolder(this.#dataOf(name), to)
  }

  /** Puts back a copy in place of the data of a server that does not run. */
  async restore(name: StoreName, from: string): Promise<void> {
    await copyFolder(from, this.#dataOf(name))
  }

  async stop(): Promise<void> {
    await Promise.all(storeNames.map(name => this.end(name)))
  }

  #dataOf(name: StoreName): string {
    return join(this.#dataDir, name, 'data')
  }
}

/** `cp`, since the files may belong to another user and Node copies no owners. */
async function copyFolder(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true })
  await execFileAsync('cp', ['-a', from, to])
}
