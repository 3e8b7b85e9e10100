import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { withKeyedMutex } from '#shared/core/keyed-mutex.ts'
import {
  basicAuthPassword,
  isOperatorCredential,
  operatorAuthChallenge,
} from '#shared/access/admin.ts'
import { countFaultyPipelines } from '#shared/org/base/pipeline-state.postgres.ts'
import { createMetricsCollector } from '#shared/operations/collect-metrics.ts'
import { createReadinessCheck, presentReadiness } from '#shared/operations/readiness.ts'

export type HealthServer = {
  port: number
  /** From now on the process is reported as not ready. */
  drain(): void
  close(): Promise<void>
}

type HealthResponse = {
  status: number
  type: string
  text: string
  headers?: Record<string, string>
}

const serverLimits = { headersTimeout: 5_000, requestTimeout: 5_000, maxHeaderSize: 16 * 1024 }
const connectionsMax = 32

/**
 * Serves `/metrics` for the operator, and `/health/live` and `/health/ready` for everyone, as web processes do.
 *
 * @param port 0 takes a free one.
 * @throws Refusal `unavailable` when it is in use.
 */
export async function serveHealth(backend: Backend, port: number): Promise<HealthServer> {
  let draining = false
  const routes = createHealthRoutes(backend, () => draining)
  const server = createServer(serverLimits, (request, response) => {
    request.resume()
    void respond(backend, request, routes).then(({ status, type, text, headers }) => {
      const length = Buffer.byteLength(text)
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': length, ...headers })
      response.end(request.method === 'HEAD' ? undefined : text)
    })
  })
  server.maxConnections = connectionsMax
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(portUnavailable(error, port)))
    server.listen(port, backend.config.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    drain() {
      draining = true
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type HealthRoute = (request: IncomingMessage) => Promise<HealthResponse> | HealthResponse
type HealthRoutes = Record<string, HealthRoute>

function createHealthRoutes(backend: Backend, isDraining: () => boolean): HealthRoutes {
  const collectMetrics = createMetricsCollector(backend, countFaultyPipelines)
  const checkReadiness = createReadinessCheck(backend)
  return {
    '/health/live': () => jsonResponse(200, { status: 'ok' }),

    async '/health/ready'() {
      const { faults, ...readiness } = await checkReadiness()
      const all = isDraining() ? [...faults, 'this process is about to stop'] : faults
      return all.length > 0
        ? jsonResponse(503, { error: `Not ready: ${all.join('; ')}` })
        : jsonResponse(200, presentReadiness(readiness))
    },

    async '/metrics'({ headers: { authorization = '' } }) {
      const bearer = /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
      const credential = bearer ?? basicAuthPassword(authorization)
      // One check at a time: guesses use one connection to Postgres at most.
      const isOperator =
        credential !== undefined &&
        (await withKeyedMutex('metrics credential', () =>
          isOperatorCredential(backend, credential),
        ))
      if (isOperator) return { status: 200, ...(await collectMetrics()) }
      const error = 'This page is for the operator'
      return jsonResponse(401, { error }, { 'WWW-Authenticate': operatorAuthChallenge })
    },
  }
}

/** Never rejects. */
async function respond(
  { log }: Pick<Backend, 'log'>,
  request: IncomingMessage,
  routes: HealthRoutes,
): Promise<HealthResponse> {
  const { method, url = '' } = request
  const path = url.split('?', 1)[0]!
  const handle = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (!handle) return jsonResponse(404, { error: 'Not here' })
  if (method !== 'GET' && method !== 'HEAD') return jsonResponse(405, { error: 'Only to be read' })
  try {
    return await handle(request)
  } catch (error) {
    if (error instanceof Refusal) return jsonResponse(503, { error: error.message })
    log.error({ err: error }, 'worker.watch-failed')
    return jsonResponse(500, { error: 'A fault of the service' })
  }
}

const jsonResponse = (
  status: number,
  body: object,
  headers: Record<string, string> = {},
): HealthResponse => ({
  status,
  type: 'application/json; charset=utf-8',
  text: JSON.stringify(body),
  headers: { 'Cache-Control': 'no-store', ...headers },
})

function portUnavailable(error: NodeJS.ErrnoException, port: number): Error {
  if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') return error
  const fault = error.code === 'EACCES' ? 'may not be opened by this user' : 'is in use'
  return new Refusal('unavailable', `Port ${port} ${fault}; set METRICS_PORT to another one`)
}
