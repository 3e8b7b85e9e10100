import { createServer, STATUS_CODES, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type Koa from 'koa'

/** Bounds of a connection: a peer that is slow to speak is hung up on, not waited for. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 16 * 1024,
} as const

const connectionsMax = 2_000

/**
 * The HTTP server around the application. What Node's parser refuses, before any route is known, gets
 * a JSON body too.
 */
export function createHttpServer(app: Koa): Server {
  const answer = app.callback()
  const server = createServer(limits, (request, response) => void answer(request, response))
  server.maxConnections = connectionsMax
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
    const [status, message] = clientErrors[error.code ?? ''] ?? [
      400,
      'The request is not valid HTTP',
    ]
    const body = JSON.stringify({ error: message })
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
  })
  return server
}

const clientErrors: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'The request headers are larger than 16 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
}
