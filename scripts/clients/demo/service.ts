import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readRunningConnection, type ServiceConnection } from '#scripts/service-connection.ts'
import { createTimedClient, type TimedClient } from '#scripts/clients/demo/client.ts'
import { resolveDataDir } from '#scripts/embedded-environment.ts'
import { cleanEnvironment } from '#scripts/services/process.ts'
import { Refusal } from '#shared/core/errors.ts'

export type DemoService = {
  baseUrl: string
  client: TimedClient
  /** The key of a vault with only the data of the demo. */
  key: string
  /** `running`: started by another process; `own`: started and stopped here. */
  kind: 'running' | 'own'
  /** Milliseconds until it was ready. */
  readyMs: number
  /** Stops an own service and removes its data; does nothing to a running one. */
  stop(): Promise<void>
}

/** A service that does not answer within this time counts as not running. */
const probeTimeoutMs = 5_000
/** On the first start a C library may have to be downloaded. */
const startTimeoutMs = 240_000
/** A service drains for 25 s at most; then its databases stop. */
const stopTimeoutMs = 40_000

const startScript = fileURLToPath(new URL('../../start.ts', import.meta.url))

/**
 * Opens the service for the demo: that of `connection`, else the one that runs on DATA_DIR, else a new
 * one in a temporary folder. On a running service it creates a key with a separate vault.
 *
 * @throws Refusal when the service of `connection` does not answer, or none can be started here.
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
      // The credentials file remains after the service has ended, and its port may be in other use.
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
  const startedAt = performance.now()
  const probeSignal = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)])
  const host = createTimedClient(baseUrl, key, probeSignal)
  await host.call('GET /health')
  const { answer } = await host.call('POST /v1/keys', { body: { name: 'Demo' } })
  return {
    baseUrl,
    client: createTimedClient(baseUrl, answer.key, signal),
    key: answer.key,
    kind: 'running',
    readyMs: performance.now() - startedAt,
    stop: async () => {},
  }
}

async function startTemporaryService(signal: AbortSignal): Promise<DemoService> {
  const startedAt = performance.now()
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
    const { baseUrl, key } = await waitUntilReady(child, { dataDir, output, signal })
    const client = createTimedClient(baseUrl, key, signal)
    return { baseUrl, client, key, kind: 'own', readyMs: performance.now() - startedAt, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The environment of an own service: without external databases, with local embeddings by default. */
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
  { dataDir, output, signal }: { dataDir: string; output: readonly string[]; signal: AbortSignal },
): Promise<ServiceConnection> {
  const deadline = Date.now() + startTimeoutMs
  while (Date.now() < deadline) {
    signal.throwIfAborted()
    if (hasExited(child)) break
    const connection = readRunningConnection(dataDir)
    if (connection) return connection
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
