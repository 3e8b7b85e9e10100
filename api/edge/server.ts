import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type Koa from 'koa'
import { bodyTimeouts, enforceBodyTimeouts } from '#api/edge/body-timeouts.ts'

/** Bounds of a connection: a peer that is slow to speak is hung up on, not waited for. */
const connectionLimits = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  ...bodyTimeouts,
}

export type ConnectionLimits = typeof connectionLimits

export type HttpServer = Server & {
  /**
   * Says in `draining` that no more requests should come, and serves those that do until for a quarter
   * of a second no connection has been opened (or for 5 s). Then takes no more, lets answers under way
   * finish, and resolves when every connection is closed; those still open after `withinMs` are cut.
   */
  drain(withinMs: number): Promise<void>
  /** It will close soon: whoever spreads requests should send none here. */
  readonly draining: boolean
}

const connectionsMax = 2_000

/**
 * The HTTP server around the application. What Node's parser refuses, before any route is known, gets
 * a JSON body too.
 */
export function createHttpServer(app: Koa, bounds: Partial<ConnectionLimits> = {}): HttpServer {
  // Node would answer a missing Host itself, with an empty body.
  const options = { ...connectionLimits, ...bounds, requireHostHeader: false }
  const handleRequest = app.callback()
  const inFlight = new Set<ServerResponse>()
  /** A good request that came before the broken one keeps its answer, and its place. */
  const refuseAfterPending = (socket: Socket, [status, message]: [number, string]): void => {
    const pendingResponse = [...inFlight].findLast(
      ({ req }) => req.socket === socket && req.complete,
    )
    if (pendingResponse) pendingResponse.once('close', () => sendRawError(socket, status, message))
    else sendRawError(socket, status, message)
  }

  const server = createServer(options, (request, response) => {
    inFlight.add(response)
    response.once('close', () => inFlight.delete(response))
    trackBody(request, response)
    const fault = findRequestFault(request)
    if (fault) sendError(response, 400, fault)
    else void handleRequest(request, response)
  })
  const trackBody = enforceBodyTimeouts(
    server,
    options.connectionsCheckingInterval,
    options,
    ({ socket }) => refuseAfterPending(socket, requestTimedOut),
  )
  server.maxConnections = connectionsMax
  // Whoever only keeps connections open must not keep others out.
  server.on('drop', () => server.closeIdleConnections())
  server.on('checkExpectation', (_, response) =>
    sendError(response, 417, 'Expect takes 100-continue and nothing else'),
  )
  server.on('connect', (_, socket) =>
    sendRawError(socket, 405, 'This is not a proxy for connections'),
  )
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    refuseAfterPending(socket, parserErrors[error.code ?? ''] ?? malformedRequest)
  })
  let draining = false
  server.on('request', (_, response) => {
    if (draining) response.shouldKeepAlive = false
  })
  return Object.defineProperty(
    Object.assign(server, {
      async drain(withinMs: number) {
        draining = true
        await waitUntilQuiet(server)
        await closeServer(server, inFlight, withinMs)
      },
    }),
    'draining',
    { get: () => draining },
  ) as HttpServer
}

/** What Node's parser lets pass and Koa would stumble over. */
function findRequestFault(request: IncomingMessage): string | null {
  const { headers, httpVersion, url = '' } = request
  if (headers.host === undefined && httpVersion === '1.1') return 'The request has no Host header'
  if (url.startsWith('/') || url === '*') return null
  if (!URL.canParse(url)) return 'The request target is not valid'
  const { pathname, search } = new URL(url)
  request.url = pathname + search
  return null
}

const requestTimedOut: [number, string] = [408, 'The request took too long to arrive']

const malformedRequest: [number, string] = [400, 'The request is not valid HTTP']

const parserErrors: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'The request headers are larger than 16 KiB'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions of the body are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: requestTimedOut,
}

function sendError(response: ServerResponse, status: number, message: string): void {
  const body = JSON.stringify({ error: message })
  const length = Buffer.byteLength(body)
  response.writeHead(status, {
    'Content-Type': jsonType,
    'Content-Length': length,
    Connection: 'close',
  })
  response.end(body)
}

/** The same where Node gives no response to write to. */
function sendRawError(socket: Duplex, status: number, message: string): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify({ error: message })
  // A client that never says goodbye would keep its half of the connection for good.
  setTimeout(() => socket.destroy(), closeGraceMs).unref()
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${jsonType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** For a last word to be read. */
const closeGraceMs = 1_000

const jsonType = 'application/json; charset=utf-8'

/** Connections that wait to be accepted when the socket closes are reset: so first nobody may come. */
const quietPeriodMs = 250
const quietTimeoutMs = 5_000

async function waitUntilQuiet(server: Server): Promise<void> {
  const startedAt = Date.now()
  let lastConnectionAt = startedAt
  const noteConnection = (): void => void (lastConnectionAt = Date.now())
  server.on('connection', noteConnection)
  while (Date.now() - lastConnectionAt < quietPeriodMs && Date.now() - startedAt < quietTimeoutMs)
    await delay(50)
  server.off('connection', noteConnection)
}

/** How often connections that have become idle are looked for while the server drains. */
const idleCheckIntervalMs = 50

/** `close` alone would wait for keep-alive connections that fell idle after it was called. */
async function closeServer(
  server: Server,
  inFlight: ReadonlySet<ServerResponse>,
  withinMs: number,
): Promise<void> {
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  for (const response of inFlight) if (!response.headersSent) response.shouldKeepAlive = false
  server.closeIdleConnections()
  const idleTimer = setInterval(() => server.closeIdleConnections(), idleCheckIntervalMs)
  const cutTimer = setTimeout(() => server.closeAllConnections(), withinMs)
  await closed
  clearInterval(idleTimer)
  clearTimeout(cutTimer)
}
