import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { Config } from '#shared/core/config.ts'
import { scopeViolation } from '#test/support/checks/watch-scopes.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const watchScopes = new URL('../checks/watch-scopes.ts', import.meta.url).href

type ProcessExit = { code: number | null; signal: NodeJS.Signals | null }

export type RunningProcess = {
  pid: number
  /** Its stdout and stderr so far. */
  output(): string
  kill(signal: NodeJS.Signals): void
  /** Resolves when it has ended. */
  exited: Promise<ProcessExit>
}

/** A process that is ready; `base` is the URL of a web process. */
export type ReadyProcess = RunningProcess & { base: string }

/** The environment of a process of the service, without the environment of the test. */
export function processEnvironment(
  config: Config,
  extra: Record<string, string> = {},
): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR, NODE_COMPILE_CACHE } = process.env
  return {
    PATH,
    HOME,
    ...(TMPDIR && { TMPDIR }),
    ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
    DATABASE_URL: config.databaseUrl,
    MONGODB_URI: config.mongodbUri,
    MASTER_KEY: config.masterKeys.map(({ key }) => key.toString('hex')).join(','),
    KEY_PEPPER: config.keyPepper,
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'info',
    RATE_LIMITS: 'off',
    EMBEDDINGS: 'local',
    ORG_GATHER_SECONDS: '0',
    RECALL_TIMEOUT_MS: String(config.recallTimeoutMs),
    ...extra,
  }
}

/**
 * Starts a command such as `node api/index.ts` and audits its MongoDB commands. It is killed at the end
 * of the test; a process that violated the scope rule or printed a Memory Key fails the test.
 */
export function launchProcess(
  t: Test,
  command: string,
  env: Record<string, string>,
): RunningProcess {
  return watched(t, command, spawned(command, env))
}

/**
 * Starts a command as `launchProcess` does and waits until it is ready.
 *
 * @param tree where another version of the service is
 */
export async function startProcess(
  t: Test,
  command: string,
  env: Record<string, string>,
  tree = root,
): Promise<ReadyProcess> {
  const child = spawned(command, env, tree)
  const ready = once(child, 'message') as Promise<[{ port?: number }]>
  const running = watched(t, command, child)
  const early = running.exited.then(({ code, signal }) => {
    throw new Error(
      `${command} ended (${signal ?? code}) before it was ready:\n${running.output()}`,
    )
  })
  const [{ port }] = await Promise.race([ready, early])
  early.catch(() => {})
  return { ...running, base: `http://127.0.0.1:${port}` }
}

function spawned(command: string, env: Record<string, string>, cwd = root): ChildProcess {
  const [program, ...args] = command.trim().split(/\s+/)
  if (program !== 'node') throw new Error(`not a node command: ${command}`)
  return spawn(process.execPath, ['--import', watchScopes, ...args], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
}

function watched(t: Test, command: string, child: ChildProcess): RunningProcess {
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const ended = new Promise<ProcessExit>(resolve =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  )
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    if (output.includes(scopeViolation))
      throw new Error(`${command} violated the scope rule:\n${output}`)
    if (/mk_[A-Za-z0-9]{32}/.test(output)) throw new Error(`${command} printed a Memory Key`)
  })
  return {
    pid: child.pid!,
    output: () => output,
    kill: signal => void child.kill(signal),
    exited: ended,
  }
}

/** A web process on the databases of a configuration. */
export const startWeb = (t: Test, config: Config, extra = {}): Promise<ReadyProcess> =>
  startProcess(t, 'node api/index.ts', processEnvironment(config, extra))

/** A worker process of all queues. */
export const startWorker = (t: Test, config: Config, extra = {}): Promise<ReadyProcess> =>
  startProcess(t, 'node workers/index.ts', processEnvironment(config, extra))
