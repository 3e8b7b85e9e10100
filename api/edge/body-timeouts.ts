import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** How long a body may take to arrive, from the first byte of its request. */
export type BodyTimeouts = {
  /** Unless the route has allowed a slow body. */
  bodyTimeoutMs: number
  /** After a response, while the body still arrives: a client that is sending may not have read the response. */
  lingerMs: number
  /** After a response, when no bytes arrive any more. */
  idleTimeoutMs: number
}

export const bodyTimeouts: BodyTimeouts = {
  bodyTimeoutMs: 30_000,
  lingerMs: 10_000,
  idleTimeoutMs: 1_000,
}

const slowBodiesAllowed = new WeakSet<IncomingMessage>()

/** Gives a body that may be large the whole `requestTimeout` of the server. */
export const allowSlowBody = (request: IncomingMessage): void => void slowBodiesAllowed.add(request)

/** A request whose body had not arrived at the last check. */
type PendingBody = {
  request: IncomingMessage
  response: ServerResponse
  startedAt: number
  /** When its response was first seen to be complete. */
  answeredAt?: number
  bytesRead: number
  /** When bytes were last seen to have arrived. */
  lastBytesAt: number
}

/**
 * Watches the bodies of requests that a server has passed on. `onTimeout` is called for a body that is
 * too slow; a connection whose request is answered while the rest of its body does not arrive is closed.
 * No client can have sent another request behind that body, so only the refused request is lost.
 *
 * @returns what to call with each request
 */
export function enforceBodyTimeouts(
  server: Server,
  checkIntervalMs: number,
  { bodyTimeoutMs, lingerMs, idleTimeoutMs }: BodyTimeouts,
  onTimeout: (request: IncomingMessage) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  const pending = new Set<PendingBody>()

  const check = (body: PendingBody, now: number): void => {
    const { request, response, startedAt } = body
    const { socket } = request
    if (request.complete || socket.destroyed) return void pending.delete(body)
    if (socket.bytesRead > body.bytesRead)
      Object.assign(body, { bytesRead: socket.bytesRead, lastBytesAt: now })
    if (!response.writableFinished) {
      if (now - startedAt < bodyTimeoutMs || slowBodiesAllowed.has(request) || response.headersSent)
        return
      pending.delete(body)
      return onTimeout(request)
    }
    body.answeredAt ??= now
    if (
      now - Math.max(body.lastBytesAt, body.answeredAt) < idleTimeoutMs &&
      now - body.answeredAt < lingerMs
    )
      return
    pending.delete(body)
    socket.destroySoon()
  }

  const timer = setInterval(() => {
    const now = performance.now()
    for (const body of pending) check(body, now)
  }, checkIntervalMs).unref()
  server.once('close', () => clearInterval(timer))

  return (request, response) => {
    if (!announcesBody(request)) return
    const now = performance.now()
    const { bytesRead } = request.socket
    const body = { request, response, startedAt: now, bytesRead, lastBytesAt: now }
    pending.add(body)
    response.once('close', () => request.complete && pending.delete(body))
  }
}

const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
