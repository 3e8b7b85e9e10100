import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  readRunningConnection,
  toRefusal,
  type ServiceConnection,
} from '#scripts/service-connection.ts'
import {
  vaultClient,
  type EndpointRequest,
  type EndpointResponse,
  type Route,
} from '#api/client/client.ts'
import { resolveDataDir } from '#scripts/embedded-environment.ts'
import { cleanEnvironment } from '#scripts/services/process.ts'
import { Refusal } from '#shared/core/errors.ts'

/**
 * Calls an endpoint by its name in the contract. `ms` is from the first byte sent to the last byte read.
 *
 * @throws Refusal `upstream` with the error of the service when it refuses, `unavailable` when it does not answer
 *   within a minute.
 */
export type TimedCall = <Name extends Route>(
  route: Name,
  request?: EndpointRequest<Name>,
) => Promise<{ answer: EndpointResponse<Name>; ms: number }>

export type DemoService = {
  baseUrl: string
  call: TimedCall
  /** The key of a vault with only the data of the demo. */
  key: string
  /** `running`: started by another process; `own`: started and stopped here. */
  kind: 'running' | 'own'
  /** Milliseconds until it was ready. */
  readyMs: number
  /** Stops an own service and removes its data; does nothing to a running one. */
  stop(): Promise<void>
}

const callTimeoutMs = 60_000
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

function timedCall(baseUrl: string, key: string, signal: AbortSignal): TimedCall {
  const client = vaultClient(baseUrl, key)
  return async (route, request) => {
    const startedAt = performance.now()
    const either = AbortSignal.any([signal, AbortSignal.timeout(callTimeoutMs)])
    try {
      const answer = await client.call(route, request, { signal: either })
      return { answer, ms: performance.now() - startedAt }
    } catch (error) {
      throw toRefusal(error)
    }
  }
}

async function connectToRunning(
  { baseUrl, key }: ServiceConnection,
  signal: AbortSignal,
): Promise<DemoService> {
  const startedAt = performance.now()
  const probeSignal = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)])
  const call = timedCall(baseUrl, key, probeSignal)
  await call('GET /health')
  const { answer } = await call('POST /v1/keys', { body: { name: 'Demo' } })
  return {
    baseUrl,
    call: timedCall(baseUrl, answer.key, signal),
    key: answer.key,
    kind: 'running',
    readyMs: performance.now() - startedAt,
    stop: async () => {},
  }
}

/** Starts a service in a temporary folder; its data goes when it is stopped. */
export async function startTemporaryService(signal: AbortSignal): Promise<DemoService> {
  const startedAt = performance.now()
  const dataDir = await mkdtemp(join(tmpdir(), 'memory-vault-demo-'))
  const child = spawn(process.execPath, [startScript], {
    env: serviceEnvironment(dataDir),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const kill = (): void => void child.kill('SIGTERM')
  process.once('exit', kill)
  const stop = async (): Promise<void> => {
    kill()
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await exited
    clearTimeout(timer)
    process.off('exit', kill)
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
  const deadline = Date.now() + startTimeoutMs
  try {
    while (child.exitCode === null && child.signalCode === null && Date.now() < deadline) {
      signal.throwIfAborted()
      const connection = readRunningConnection(dataDir)
      if (!connection) {
        await delay(25)
        continue
      }
      const { baseUrl, key } = connection
      const readyMs = performance.now() - startedAt
      return { baseUrl, call: timedCall(baseUrl, key, signal), key, kind: 'own', readyMs, stop }
    }
    throw new Refusal(
      'unavailable',
      `No service could be started for the demo:\n${output.trim()}`,
      'Start one yourself and name it with --base-url and --key',
    )
  } catch (error) {
    await stop()
    throw error
  }
}

/** The environment of an own service: without external databases, with local embeddings by default. */
function serviceEnvironment(dataDir: string): NodeJS.ProcessEnv {
  const { DATABASE_URL: _postgres, MONGODB_URI: _mongodb, ...rest } = cleanEnvironment()
  const EMBEDDINGS = rest.EMBEDDINGS || 'local'
  return { ...rest, EMBEDDINGS, HOST: '127.0.0.1', PORT: '0', DATA_DIR: dataDir }
}
