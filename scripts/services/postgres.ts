import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync } from 'node:fs'
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  preparePostgresBinaries,
  resolveRunAsUser,
  type RunAsUser,
  type PostgresBinaries,
} from './postgres-binaries.ts'
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
  cleanEnvironment,
  type LineLogger,
  type DatabaseServer,
} from './process.ts'

const execFileAsync = promisify(execFile)

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 30_000
const START_ATTEMPTS = 10

/** Faults that pass by themselves. */
const transientErrors = [
  // Another process was given the port between our asking for it and the server's taking it.
  'could not bind',
  // A server was killed just now and its children have not noticed yet.
  'pre-existing shared memory block',
]

/** The log holds faults, never the values in them: a statement carries people's words. */
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
 * What tests write survives the end of any process, as ever, but no power cut: storing a row takes
 * 0.13 ms instead of 0.24. Commits wait for the log all the same; it saves nothing more not to.
 */
const testServerSettings = {
  ...serverSettings,
  max_connections: '200',
  fsync: 'off',
}

/** The same order of letters everywhere; only Linux has this locale of its own. */
const localeFlags =
  process.platform === 'linux'
    ? ['--locale=C.UTF-8']
    : ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']

/** One server: its folders, its programs, and as whom they run. */
type PostgresInstallation = {
  home: string
  data: string
  logFile: string
  runAs: RunAsUser | undefined
  binaries: PostgresBinaries
}

/**
 * Starts the embedded PostgreSQL on `<dataDir>/postgres`, at 127.0.0.1 on a
 * port of the kernel's choice, behind a random password kept there with mode
 * 0600. The data is made at the first start and kept. A server left running by a
 * launcher that was killed is taken over as it is. As root the server runs as
 * a stand-in user, in private folders too.
 *
 * @param forTests gives up safety against power cuts for speed.
 * @throws Refusal `unavailable` where PostgreSQL cannot run; the hint says what to do.
 * @throws Error with the server's own words when it does not start.
 */
export async function startPostgres(
  dataDir: string,
  { log, forTests = false }: { log: LineLogger; forTests?: boolean | undefined },
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
  const server =
    orphaned ?? (await startServer(installation, forTests ? testServerSettings : serverSettings))
  // Said aloud, or a PGSSLMODE of the user's environment asks a server on loopback for TLS.
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

/** The password of the data, made with it. The stand-in user owns it: initdb reads it too. */
async function ensurePassword({ home, data, runAs }: PostgresInstallation): Promise<string> {
  const file = join(home, 'password')
  const known = await readFile(file, 'utf8').catch(() => '')
  // Half a password can only be left from before there was data.
  if (existsSync(data) && known) return known.trim()

  const password = randomBytes(24).toString('hex')
  await writeFile(file, `${password}\n`, { mode: 0o600 })
  if (runAs) {
    await chown(home, runAs.uid, runAs.gid)
    await chown(file, runAs.uid, runAs.gid)
  }
  return password
}

/** Made beside its final place and renamed, so that data is there whole or not at all. */
async function initializeDataDir(
  installation: PostgresInstallation,
  forTests: boolean,
): Promise<void> {
  const { home, data, runAs, binaries } = installation
  const work = join(home, 'data.new')
  // An initdb whose launcher was killed may still be writing for a moment.
  await rm(work, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  await mkdir(work, { mode: 0o700 })
  if (runAs) await chown(work, runAs.uid, runAs.gid)

  const flags = [
    '--username=vault',
    '--pwfile=../password',
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    ...localeFlags,
    '--no-instructions',
    ...(forTests ? ['--no-sync'] : []),
  ]
  try {
    await execFileAsync(
      binaries.initdb,
      ['-D', dataDirArgument(runAs, work), ...flags],
      spawnOptions(runAs, work),
    )
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Error(`initdb failed: ${stderr.trim() || message}`, { cause: error })
  }
  await rename(work, data)
}

/**
 * How a server names its own data folder. Its stand-in user could not pass
 * through a private folder above it; a process started inside needs not, and
 * under this name Linux leads to where the process is.
 */
function dataDirArgument(as: RunAsUser | undefined, data: string): string {
  return as && process.platform === 'linux' ? '/proc/self/cwd' : data
}

function spawnOptions(as: RunAsUser | undefined, cwd: string) {
  return { cwd, ...as, env: cleanEnvironment({ LC_MESSAGES: 'C' }) }
}

async function startServer(
  installation: PostgresInstallation,
  values: Record<string, string>,
): Promise<Postmaster> {
  for (let attempt = 1; ; attempt++) {
    const server = spawnServer(installation, await findFreePort(), values)
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
        // Into a file, which outlives us as the server does; a pipe would not.
        stdio: ['ignore', output, output],
        // A group of its own: Ctrl-C in a terminal must not end it before those who use it.
        detached: true,
      },
    )
  } finally {
    closeSync(output)
  }
}

async function findFreePort(): Promise<number> {
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
  throw new Error(`PostgreSQL did not start: ${why}`)
}

/** A server of ours and one taken over are watched alike, by their process id. */
function monitorServer(
  installation: PostgresInstallation,
  { pid }: Postmaster,
): Omit<DatabaseServer, 'url'> & { pid: number } {
  let stopping: Promise<void> | undefined
  const died = new Promise<string>(resolve => {
    const watch = setInterval(() => {
      if (isAlive(pid)) return
      clearInterval(watch)
      if (!stopping) resolve(`PostgreSQL ended. ${readLogTail(installation.logFile)}`)
    }, 250)
  })
  return { pid, unexpectedExit: died, stop: () => (stopping ??= stopServer(pid)) }
}

async function stopServer(pid: number): Promise<void> {
  if (!isAlive(pid)) return
  process.kill(pid, 'SIGINT')
  if (await waitForExit(pid, STOP_TIMEOUT_MS)) return
  process.kill(pid, 'SIGQUIT')
  await waitForExit(pid, STOP_TIMEOUT_MS)
}
