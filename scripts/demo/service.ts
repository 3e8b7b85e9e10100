import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readRunningConnection, type ServiceConnection } from '#scripts/service-connection.ts'
import { createTimedClient, type TimedClient } from '#scripts/demo/client.ts'
import { resolveDataDir } from '#scripts/embedded-environment.ts'
import { cleanEnvironment } from '#scripts/services/process.ts'
import { Refusal } from '#shared/core/errors.ts'

export type DemoService = {
  baseUrl: string
  client: TimedClient
  /** The key of a vault that holds nothing but the demo. */
  key: string
  /** `running`: somebody's, and it goes on; `own`: started here, gone afterwards. */
  kind: 'running' | 'own'
  /** Milliseconds until it could be used. */
  readyMs: number
  /** Leaves nothing behind of a service of our own; a running one is left alone. */
  stop(): Promise<void>
}

/** A service that is there answers at once; what hangs is taken for gone. */
const probeTimeoutMs = 5_000
/** The embedded servers may have to be fetched the first time. */
const startTimeoutMs = 240_000
/** A service drains for 25 s at most, and its databases take a moment after it. */
const stopTimeoutMs = 40_000

const startScript = fileURLToPath(new URL('../start.ts', import.meta.url))

/**
 * A service to tell the story to: the one given, else the one that runs on DATA_DIR, else one started
 * for this alone in a temporary folder. On a service that was running the demo gets a key and so a
 * vault of its own.
 *
 * @throws Refusal when the one given does not answer, or none can be started here.
 */
export async function openService(
  connection: ServiceConnection | undefined,
  { signal, starting }: { signal: AbortSignal; starting: () => void },
): Promise<DemoService> {
  if (connection) return connectToRunning(connection, signal)
  const running = readRunningConnection(resolveDataDir(process.env))
  if (running) {
    try {
      return await connectToRunning(running, signal)
    } catch (error) {
      // The file outlives its service, and another program may have taken the port since.
      if (!(error instanceof Refusal)) throw error
    }
  }
  starting()
  return startTemporaryService(signal)
}

async function connectToRunning(
  { baseUrl, key }: ServiceConnection,
  signal: AbortSignal,
): Promise<DemoService> {
  const begun = performance.now()
  const soon = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)])
  const host = createTimedClient(baseUrl, key, soon)
  await host.call('GET /health')
  const { answer } = await host.call('POST /v1/keys', { body: { name: 'Demo' } })
  return {
    baseUrl,
    client: createTimedClient(baseUrl, answer.key, signal),
    key: answer.key,
    kind: 'running',
    readyMs: performance.now() - begun,
    stop: async () => {},
  }
}

async function startTemporaryService(signal: AbortSignal): Promise<DemoService> {
  const begun = performance.now()
  const dataDir = await mkdtemp(join(tmpdir(), 'memory-vault-demo-'))
  const child = spawn(process.execPath, [startScript], {
    env: serviceEnvironment(dataDir),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => output.push(text))
  }
  const kill = (): void => void child.kill('SIGTERM')
  process.once('exit', kill)
  const stop = async (): Promise<void> => {
    await stopProcess(child)
    process.off('exit', kill)
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
  try {
    const { baseUrl, key } = await waitUntilReady(child, { dataDir, said: output, signal })
    const client = createTimedClient(baseUrl, key, signal)
    return { baseUrl, client, key, kind: 'own', readyMs: performance.now() - begun, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A service of our own touches no database and no provider that the environment names, unless asked to embed there. */
function serviceEnvironment(dataDir: string): NodeJS.ProcessEnv {
  const { DATABASE_URL: _postgres, MONGODB_URI: _mongodb, ...rest } = cleanEnvironment()
  return {
    ...rest,
    EMBEDDINGS: rest.EMBEDDINGS || 'local',
    HOST: '127.0.0.1',
    PORT: '0',
    DATA_DIR: dataDir,
  }
}

async function waitUntilReady(
  child: ChildProcess,
  {
    dataDir,
    said: output,
    signal,
  }: { dataDir: string; said: readonly string[]; signal: AbortSignal },
): Promise<ServiceConnection> {
  const deadline = Date.now() + startTimeoutMs
  while (Date.now() < deadline) {
    signal.throwIfAborted()
    if (hasExited(child)) break
    const address = readRunningConnection(dataDir)
    if (address) return address
    await delay(25)
  }
  throw new Refusal(
    'unavailable',
    `No service could be started for the demo:\n${output.join('').trim()}`,
    'Start one yourself and name it with --base-url and --key',
  )
}

const hasExited = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null

async function stopProcess(child: ChildProcess): Promise<void> {
  if (hasExited(child)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  child.once('exit', () => resolve())
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
  await promise
  clearTimeout(timer)
}
