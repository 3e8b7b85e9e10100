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
import { bodyPatience, watchBodies } from '#api/edge/slow-bodies.ts'

/** Bounds of a connection: a peer that is slow to speak is hung up on, not waited for. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  ...bodyPatience,
}

export type ConnectionLimits = typeof limits

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
  const options = { ...limits, ...bounds, requireHostHeader: false }
  const answer = app.callback()
  const underWay = new Set<ServerResponse>()
  /** A good request that came before the broken one keeps its answer, and its place. */
  const part = (socket: Socket, [status, message]: [number, string]): void => {
    const owed = [...underWay].findLast(({ req }) => req.socket === socket && req.complete)
    if (owed) owed.once('close', () => refuseRaw(socket, status, message))
    else refuseRaw(socket, status, message)
  }

  const server = createServer(options, (request, response) => {
    underWay.add(response)
    response.once('close', () => underWay.delete(response))
    watch(request, response)
    const fault = faultOf(request)
    if (fault) refuse(response, 400, fault)
    else void answer(request, response)
  })
  const watch = watchBodies(server, options.connectionsCheckingInterval, options, ({ socket }) =>
    part(socket, tooSlow),
  )
  server.maxConnections = connectionsMax
  // Whoever only keeps connections open must not keep others out.
  server.on('drop', () => server.closeIdleConnections())
  server.on('checkExpectation', (_, response) =>
    refuse(response, 417, 'Expect takes 100-continue and nothing else'),
  )
  server.on('connect', (_, socket) => refuseRaw(socket, 405, 'This is not a proxy for connections'))
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    part(socket, clientErrors[error.code ?? ''] ?? notHttp)
  })
  let draining = false
  server.on('request', (_, response) => {
    if (draining) response.shouldKeepAlive = false
  })
  return Object.defineProperty(
    Object.assign(server, {
      async drain(withinMs: number) {
        draining = true
        await quiet(server)
        await drain(server, underWay, withinMs)
      },
    }),
    'draining',
    { get: () => draining },
  ) as HttpServer
}

/** What Node's parser lets pass and Koa would stumble over. */
function faultOf(request: IncomingMessage): string | null {
  const { headers, httpVersion, url = '' } = request
  if (headers.host === undefined && httpVersion === '1.1') return 'The request has no Host header'
  if (url.startsWith('/') || url === '*') return null
  if (!URL.canParse(url)) return 'The request target is not valid'
  const { pathname, search } = new URL(url)
  request.url = pathname + search
  return null
}

const tooSlow: [number, string] = [408, 'The request took too long to arrive']

const notHttp: [number, string] = [400, 'The request is not valid HTTP']

const clientErrors: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'The request headers are larger than 16 KiB'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions of the body are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: tooSlow,
}

function refuse(response: ServerResponse, status: number, message: string): void {
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
function refuseRaw(socket: Duplex, status: number, message: string): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify({ error: message })
  // A client that never says goodbye would keep its half of the connection for good.
  setTimeout(() => socket.destroy(), goodbyeMs).unref()
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${jsonType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** For a last word to be read. */
const goodbyeMs = 1_000

const jsonType = 'application/json; charset=utf-8'

/** Connections that wait to be accepted when the socket closes are reset: so first nobody may come. */
const quietMs = 250
const quietWithinMs = 5_000

async function quiet(server: Server): Promise<void> {
  const begun = Date.now()
  let last = begun
  const heard = (): void => void (last = Date.now())
  server.on('connection', heard)
  while (Date.now() - last < quietMs && Date.now() - begun < quietWithinMs) await delay(50)
  server.off('connection', heard)
}

/** How often connections that have become idle are looked for while the server drains. */
const sweepMs = 50

/** `close` alone would wait for keep-alive connections that fell idle after it was called. */
async function drain(
  server: Server,
  underWay: ReadonlySet<ServerResponse>,
  withinMs: number,
): Promise<void> {
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  for (const response of underWay) if (!response.headersSent) response.shouldKeepAlive = false
  server.closeIdleConnections()
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMs)
  const late = setTimeout(() => server.closeAllConnections(), withinMs)
  await closed
  clearInterval(sweep)
  clearTimeout(late)
}
