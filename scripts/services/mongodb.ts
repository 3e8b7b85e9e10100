import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Refusal } from '#shared/core/errors.ts'
import { resolveGlibcLoader } from './glibc-loader.ts'
import { ensurePrivateDir } from './private-dir.ts'
import {
  waitForExit,
  readLogTail,
  cleanEnvironment,
  type LineLogger,
  type DatabaseServer,
} from './process.ts'

const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 12_000

/** Length of the path the package appends to the socket folder: `/embedded-mongodb-XXXXXX/mongodb.sock`. */
const SOCKET_NAME_BYTES = 37
/** The lowest limit of any platform (macOS) for the path of a Unix socket, without the final NUL. */
const SOCKET_PATH_BYTES = 103

/**
 * Starts the embedded MongoDB engine on `<dataDir>/mongodb`, in a separate
 * process that ends when this one ends or is killed. The address is the same
 * at every start, so clients continue after a restart. Writes are journaled:
 * without a journal the engine loses acknowledged writes when it is killed.
 *
 * @throws Refusal `unavailable` where the engine cannot run; the hint names MONGODB_URI; with the engine's
 *   message when it cannot open its data.
 */
export async function startMongodb(
  dataDir: string,
  { log }: { log: LineLogger },
): Promise<DatabaseServer & { pid: number }> {
  const home = await ensurePrivateDir(join(dataDir, 'mongodb'))
  const sockets = await resolveSocketDir(home)
  const logFile = join(home, 'engine.log')

  const engine = await spawnEngine(join(home, 'data'), sockets, logFile, dataDir, log)
  await waitUntilReady(engine, logFile)

  let stopping: Promise<void> | undefined
  const died = new Promise<string>(resolve => {
    engine.once('exit', (code, signal) => {
      if (!stopping)
        resolve(`The MongoDB engine ended (${signal ?? code}). ${readLogTail(logFile)}`)
    })
  })
  const socket = encodeURIComponent(join(sockets, 'mongodb.sock'))
  return {
    url: `mongodb://${socket}/vault?directConnection=true&journal=true`,
    pid: engine.pid!,
    unexpectedExit: died,
    stop: () => (stopping ??= stopEngine(engine)),
  }
}

/** Returns the folder for sockets: inside the data folder if the path is short enough. */
async function resolveSocketDir(home: string): Promise<string> {
  const own = join(home, 'run')
  const key = createHash('sha256')
    .update(await realpath(home))
    .digest('hex')
    .slice(0, 12)
  const places = [own, ...[tmpdir(), '/tmp'].map(dir => join(dir, `memory-vault-${key}`))]
  const fits = (dir: string) => Buffer.byteLength(dir) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES
  const dir = places.find(fits) ?? own
  return await ensurePrivateDir(dir)
}

async function spawnEngine(
  data: string,
  sockets: string,
  logFile: string,
  dataDir: string,
  log: LineLogger,
): Promise<ChildProcess> {
  const program = fileURLToPath(new URL('mongodb-engine.ts', import.meta.url))
  const [command, ...args] = [
    ...(await resolveGlibcLoader(dataDir, log)),
    process.execPath,
    program,
    data,
    sockets,
  ]
  const output = openSync(logFile, 'w', 0o600)
  try {
    return spawn(command, args, {
      stdio: ['ignore', output, output, 'ipc'],
      env: cleanEnvironment(),
      // A separate process group: Ctrl-C in a terminal must not end it before its clients.
      detached: true,
    })
  } finally {
    closeSync(output)
  }
}

/** Resolves when the engine is ready. @throws Error after the engine has ended. */
async function waitUntilReady(engine: ChildProcess, logFile: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  engine.once('error', reject)
  engine.once('message', (message: { error?: string }) => {
    if (message.error === undefined) resolve()
    else reject(engineRefusal(message.error, logFile))
  })
  engine.once('exit', (code, signal) => {
    const why = `${signal ?? code}. ${readLogTail(logFile)}`
    reject(engineRefusal(why, logFile))
  })
  const timer = setTimeout(() => {
    reject(new Error('The MongoDB engine did not start within a minute'))
  }, START_TIMEOUT_MS)

  try {
    await promise
  } catch (error) {
    engine.kill('SIGKILL')
    if (engine.pid !== undefined) await waitForExit(engine.pid, STOP_TIMEOUT_MS)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Makes the refusal with the beginning of the engine's words, which may be many lines of JSON. */
function engineRefusal(words: string, logFile: string): Refusal {
  const why = words.replaceAll(/\s+/g, ' ').slice(0, 300)
  return new Refusal(
    'unavailable',
    `The MongoDB engine did not start: ${why}`,
    `Its log is ${logFile}. If the data beside it is damaged, put it back from a backup, or choose another DATA_DIR.`,
  )
}

async function stopEngine(engine: ChildProcess): Promise<void> {
  if (engine.exitCode !== null || engine.signalCode !== null) return
  const exited = new Promise<void>(resolve => engine.once('exit', () => resolve()))
  const timer = setTimeout(() => engine.kill('SIGKILL'), STOP_TIMEOUT_MS)
  engine.kill('SIGTERM')
  await exited
  clearTimeout(timer)
}
