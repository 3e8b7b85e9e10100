import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Refusal } from '#shared/core/errors.ts'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { preparePostgresBinaries, resolveRunAsUser } from './postgres-binaries.ts'
import {
  ensureDatabase,
  findOrphanedServer,
  readPostmasterFile,
  type Postmaster,
} from './postmaster.ts'
import {
  waitForExit,
  isAlive,
  readLogTail,
  type LineLogger,
  type DatabaseServer,
} from './process.ts'
import {
  type PostgresInstallation,
  ensurePassword,
  initializeDataDir,
  dataDirArgument,
  spawnOptions,
} from '#scripts/services/postgres-data-dir.ts'

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 30_000
const START_ATTEMPTS = 10

/** Faults after which another attempt may succeed. */
const transientErrors = [
  // Another process bound the port between `findFreePort` and the start of the server.
  'could not bind',
  // A server was just killed and its child processes have not ended yet.
  'pre-existing shared memory block',
]

/** The log has errors without statements or values, because they contain texts of users. */
const serverSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  timezone: 'UTC',
  log_checkpoints: 'off',
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
}

/**
 * For tests: writes survive the end of any process, but not a power cut. Storing a row takes 0.13 ms
 * instead of 0.24 ms. `synchronous_commit` stays on: turning it off saves no more time.
 */
const testServerSettings = { ...serverSettings, max_connections: '200', fsync: 'off' }

/**
 * Starts the embedded PostgreSQL on `<dataDir>/postgres`, at 127.0.0.1 on a
 * free port, with a random password in a file of mode 0600. The data is created
 * at the first start. A server left running by a killed launcher is taken over
 * unchanged. When this process is root, the server runs as another user.
 *
 * @param forTests trades safety against power cuts for speed.
 * @param port that of an earlier start, for clients that keep their address; without it a free one.
 * @throws Refusal `unavailable` if PostgreSQL cannot run or does not start, with the server's message;
 *   `conflict` when its password is missing. The hint says what to do.
 */
export async function startPostgres(
  dataDir: string,
  {
    log,
    forTests = false,
    port,
  }: { log: LineLogger; forTests?: boolean | undefined; port?: number | undefined },
): Promise<DatabaseServer & { pid: number }> {
  const home = join(dataDir, 'postgres')
  const data = join(home, 'data')
  await mkdir(home, { recursive: true, mode: 0o700 })
  const as = await resolveRunAsUser(data)
  const program = await preparePostgresBinaries(dataDir, as)
  const installation: PostgresInstallation = {
    home,
    data,
    logFile: join(home, 'server.log'),
    runAs: as,
    binaries: program,
  }

  const password = await ensurePassword(installation)
  if (!existsSync(data)) await initializeDataDir(installation, forTests)

  const orphaned = await findOrphanedServer(data)
  if (orphaned) log(`Took over PostgreSQL as an earlier start left it (process ${orphaned.pid})`)
  const settings = forTests ? testServerSettings : serverSettings
  const server = orphaned ?? (await startServer(installation, settings, port))
  // Explicit, because a PGSSLMODE in the environment would request TLS from this server.
  const urlOf = (name: string) =>
    `postgresql://vault:${password}@127.0.0.1:${server.port}/${name}?sslmode=disable`
  try {
    await ensureDatabase(urlOf('postgres'), 'vault')
  } catch (error) {
    if (!orphaned) await stopServer(server.pid)
    throw error
  }
  return { url: urlOf('vault'), ...monitorServer(installation, server) }
}

async function startServer(
  installation: PostgresInstallation,
  values: Record<string, string>,
  port: number | undefined,
): Promise<Postmaster> {
  for (let attempt = 1; ; attempt++) {
    const server = spawnServer(installation, port ?? (await findFreePort()), values)
    try {
      return await waitUntilReady(installation, server)
    } catch (error) {
      server.kill('SIGQUIT')
      const log = readLogTail(installation.logFile)
      if (attempt === START_ATTEMPTS || !transientErrors.some(fault => log.includes(fault)))
        throw error
      await delay(250)
    }
  }
}

function spawnServer(
  { data, logFile, runAs, binaries }: PostgresInstallation,
  port: number,
  values: object,
): ChildProcess {
  const flags = Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const output = openSync(logFile, 'w', 0o600)
  try {
    return spawn(
      binaries.postgres,
      ['-D', dataDirArgument(runAs, data), '-p', String(port), ...flags],
      {
        ...spawnOptions(runAs, data),
        // A file, because the server may outlive this process; a pipe would break.
        stdio: ['ignore', output, output],
        // A separate process group: Ctrl-C in a terminal must not end it before its clients.
        detached: true,
      },
    )
  } finally {
    closeSync(output)
  }
}

export async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

async function waitUntilReady(
  { data, logFile }: PostgresInstallation,
  server: ChildProcess,
): Promise<Postmaster> {
  let failure: Error | undefined
  server.once('error', error => (failure = error))
  const deadline = Date.now() + START_TIMEOUT_MS

  while (!failure && server.exitCode === null && server.signalCode === null) {
    const postmaster = await readPostmasterFile(data)
    if (postmaster?.isReady && postmaster.pid === server.pid) return postmaster
    if (Date.now() > deadline) failure = new Error('it was not ready within a minute')
    await delay(10)
  }
  const why = [failure?.message, readLogTail(logFile)].filter(Boolean).join('. ')
  throw new Refusal(
    'unavailable',
    `PostgreSQL did not start: ${why}`,
    `Its log is ${logFile}. If ${data} is damaged, put it back from a backup, or choose another DATA_DIR.`,
  )
}

/** Watches a server by its process id, because one taken over is not a child process. */
function monitorServer(
  installation: PostgresInstallation,
  { pid }: Postmaster,
): Omit<DatabaseServer, 'url'> & { pid: number } {
  let stopping: Promise<void> | undefined
  const unexpectedExit = new Promise<string>(resolve => {
    const watch = setInterval(() => {
      if (isAlive(pid)) return
      clearInterval(watch)
      if (!stopping) resolve(`PostgreSQL ended. ${readLogTail(installation.logFile)}`)
    }, 250)
  })
  return { pid, unexpectedExit, stop: () => (stopping ??= stopServer(pid)) }
}

async function stopServer(pid: number): Promise<void> {
  if (!isAlive(pid)) return
  process.kill(pid, 'SIGINT')
  if (await waitForExit(pid, STOP_TIMEOUT_MS)) return
  process.kill(pid, 'SIGQUIT')
  await waitForExit(pid, STOP_TIMEOUT_MS)
}
