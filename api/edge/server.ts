import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type Koa from 'koa'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { bodyTimeouts, enforceBodyTimeouts } from '#api/edge/body-timeouts.ts'
import { rateLimitSubnet } from '#shared/access/rate-limit/subnet.ts'

/** Limits of a connection: a slow peer is disconnected. */
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
   * Sets `draining` and goes on serving until no connection has been opened for 250 ms, at most 5 s.
   * Then accepts no more connections, lets responses finish, and resolves when every connection is
   * closed; those still open after `withinMs` are cut.
   */
  drain(withinMs: number): Promise<void>
  /** The server will close soon: a load balancer should send no requests here. */
  readonly draining: boolean
  /** Whether a request waits for its response, or for the end of it. */
  readonly serving: boolean
}

const connectionsMax = 2_000

/**
 * The HTTP server around the application. Requests that Node's parser refuses get a JSON body too, before any
 * route is known.
 */
export function createHttpServer(
  app: Koa,
  {
    pendingPerAddress = null,
    ...bounds
  }: Partial<ConnectionLimits> & { pendingPerAddress?: number | null } = {},
): HttpServer {
  // Node would answer a missing Host with an empty body.
  const options = { ...connectionLimits, ...bounds, requireHostHeader: false }
  const handleRequest = app.callback()
  const inFlight = new Set<ServerResponse>()
  /** A valid request before the broken one on the same connection is answered first. */
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
  limitPendingConnections(server, pendingPerAddress)
  // Clients that only keep connections open must not keep others out.
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
  return Object.defineProperties(
    Object.assign(server, {
      async drain(withinMs: number) {
        draining = true
        await waitUntilQuiet(server)
        await closeServer(server, inFlight, withinMs)
      },
    }),
    { draining: { get: () => draining }, serving: { get: () => inFlight.size > 0 } },
  ) as HttpServer
}

/** A fault that Node's parser accepts and Koa would throw on. */
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

/** As `sendError`, where Node gives no response to write to. */
function sendRawError(socket: Duplex, status: number, message: string): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify({ error: message })
  // A client that never closes would keep its half of the connection open.
  setTimeout(() => socket.destroy(), closeGraceMs).unref()
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${jsonType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** Time for the client to read the last response. */
const closeGraceMs = 1_000

const jsonType = 'application/json; charset=utf-8'

/** Connections waiting in the backlog are reset when the socket closes: so first none may be opened. */
const quietPeriodMs = 250
const quietCheckMs = 50
const quietTimeoutMs = 5_000

/** Counts checks, not milliseconds: a process that stood still has not yet seen who has connected. */
async function waitUntilQuiet(server: Server): Promise<void> {
  const endAt = Date.now() + quietTimeoutMs
  let quietMs = 0
  const noteConnection = (): void => void (quietMs = 0)
  server.on('connection', noteConnection)
  for (; quietMs < quietPeriodMs && Date.now() < endAt; quietMs += quietCheckMs)
    await delay(quietCheckMs)
  server.off('connection', noteConnection)
}

/** How often a draining server closes connections that have become idle. */
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

/**
 * Bounds the connections of one address (of one /64 network of IPv6) on which a whole request head has not
 * arrived: for a further one the oldest is closed. Requests under way and idle connections that are
 * kept alive do not count, so a proxy in front, whose heads arrive whole, is not bound by this.
 *
 * @param perAddress null: unbounded.
 */
function limitPendingConnections(server: Server, perAddress: number | null): void {
  if (perAddress === null) return
  // Connections of an address, and how many bytes each had received when its last response had been sent.
  const byAddress = new Map<string, Map<Socket, number>>()
  // Worked out once for each connection: a closed socket has no address any more.
  const addresses = new WeakMap<Socket, string>()

  const wait = (socket: Socket): void => {
    if (socket.destroyed) return
    const address = addresses.get(socket)!
    const reads = byAddress.get(address) ?? new Map<Socket, number>()
    byAddress.set(address, reads)
    reads.set(socket, socket.bytesRead)
    if (reads.size > perAddress) findOldestPending(reads, perAddress)?.destroy()
  }
  const stopWaiting = (socket: Socket): void => {
    const address = addresses.get(socket)!
    const reads = byAddress.get(address)
    reads?.delete(socket)
    if (reads?.size === 0) byAddress.delete(address)
  }

  server.on('connection', socket => {
    addresses.set(socket, rateLimitSubnet(socket.remoteAddress ?? ''))
    wait(socket)
    socket.once('close', () => stopWaiting(socket))
  })
  server.on('request', ({ socket }, response) => {
    stopWaiting(socket)
    response.once('close', () => wait(socket))
  })
}

/** The first connection that is pending, if more than `max` are. */
function findOldestPending(reads: Map<Socket, number>, max: number): Socket | undefined {
  let oldest: Socket | undefined
  let count = 0
  for (const [socket, readBefore] of reads) {
    const isIdle = readBefore > 0 && socket.bytesRead === readBefore
    if (isIdle) continue
    oldest ??= socket
    if (++count > max) return oldest
  }
  return undefined
}
