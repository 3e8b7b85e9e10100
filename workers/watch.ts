import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { inTurn } from '#shared/core/keyed-mutex.ts'
import { basicPassword, isOperatorCredential, operatorChallenge } from '#shared/access/operator.ts'
import { metricsPage } from '#shared/operations/metrics-page.ts'
import { readinessOf } from '#shared/operations/readiness.ts'

export type Watched = {
  /** The port it listens at. */
  port: number
  /** From here on it says that this process is about to stop. */
  drain(): void
  close(): Promise<void>
}

type Answer = { status: number; type: string; text: string; headers?: Record<string, string> }

/** Scrapes and probes come every few seconds; whoever wants more is in the way of the work. */
const limits = { headersTimeout: 5_000, requestTimeout: 5_000, maxHeaderSize: 16 * 1024 }
const connectionsMax = 32

/**
 * Tells at `METRICS_PORT` how this worker does: `/metrics` to the operator, `/health/live` and
 * `/health/ready` to everyone, as web processes do at their port. Nothing else is there.
 *
 * @param port 0 takes a free one.
 * @throws Refusal `unavailable` when it is taken.
 */
export async function watchWorker(backend: Backend, port: number): Promise<Watched> {
  let draining = false
  const answers = answersOf(backend, () => draining)
  const server = createServer(limits, (request, response) => {
    request.resume()
    void answerTo(backend, request, answers).then(({ status, type, text, headers }) => {
      const length = Buffer.byteLength(text)
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': length, ...headers })
      response.end(request.method === 'HEAD' ? undefined : text)
    })
  })
  server.maxConnections = connectionsMax
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusedPort(error, port)))
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

type Answers = Record<string, (request: IncomingMessage) => Promise<Answer> | Answer>

function answersOf(backend: Backend, isDraining: () => boolean): Answers {
  const page = metricsPage(backend)
  const readiness = readinessOf(backend)
  return {
    '/health/live': () => json(200, { status: 'ok' }),

    async '/health/ready'() {
      const { faults, lagSeconds } = await readiness()
      const all = isDraining() ? [...faults, 'this process is about to stop'] : faults
      return all.length > 0
        ? json(503, { error: `Not ready: ${all.join('; ')}` })
        : json(200, { status: 'ok', queue_lag_seconds: lagSeconds })
    },

    async '/metrics'({ headers: { authorization = '' } }) {
      const bearer = /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
      const credential = bearer ?? basicPassword(authorization)
      // One after the other: guessing takes one connection to Postgres at most.
      const known =
        credential !== undefined &&
        (await inTurn('watch', () => isOperatorCredential(backend, credential)))
      if (known) return { status: 200, ...(await page()) }
      const error = 'This page is for the operator'
      return json(401, { error }, { 'WWW-Authenticate': operatorChallenge })
    },
  }
}

/** Never rejects. */
async function answerTo(
  { log }: Pick<Backend, 'log'>,
  request: IncomingMessage,
  answers: Answers,
): Promise<Answer> {
  const { method, url = '' } = request
  const path = url.split('?', 1)[0]!
  const answer = Object.hasOwn(answers, path) ? answers[path] : undefined
  if (!answer) return json(404, { error: 'Not here' })
  if (method !== 'GET' && method !== 'HEAD') return json(405, { error: 'Only to be read' })
  try {
    return await answer(request)
  } catch (error) {
    if (error instanceof Refusal) return json(503, { error: error.message })
    log.error({ err: error }, 'worker.watch-failed')
    return json(500, { error: 'A fault of the service' })
  }
}

const json = (status: number, body: object, headers: Record<string, string> = {}): Answer => ({
  status,
  type: 'application/json; charset=utf-8',
  text: JSON.stringify(body),
  headers: { 'Cache-Control': 'no-store', ...headers },
})

function refusedPort(error: NodeJS.ErrnoException, port: number): Error {
  if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') return error
  const why = error.code === 'EACCES' ? 'may not be opened by this user' : 'is in use'
  return new Refusal('unavailable', `Port ${port} ${why}; set METRICS_PORT to another one`)
}
