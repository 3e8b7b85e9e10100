import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** How long a body may take to arrive, from the first byte of its request. */
export type BodyPatience = {
  /** Of a route that says nothing else. */
  bodyMs: number
  /** After an answer, as long as the body goes on coming: a client that is still sending may not have read it. */
  restMs: number
  /** After an answer, when nothing comes any more. */
  silenceMs: number
}

export const bodyPatience: BodyPatience = { bodyMs: 30_000, restMs: 10_000, silenceMs: 1_000 }

const patient = new WeakSet<IncomingMessage>()

/** Lets a body take as long as the server gives any request: one that may be large. */
export const allowLargeBody = (request: IncomingMessage): void => void patient.add(request)

/** A request whose body was not there when it was last looked at. */
type Waiting = {
  request: IncomingMessage
  response: ServerResponse
  begun: number
  /** When its answer was first seen to be complete. */
  answered?: number
  bytes: number
  /** When bytes were last seen to have come. */
  heard: number
}

/**
 * Watches the bodies of requests that a server has passed on. One that is too slow is told to `late`; a
 * connection whose request is answered while the rest of its body does not come is closed. No client
 * can have sent another request behind it, so nobody loses more than what was refused.
 *
 * @param everyMs between two looks
 * @returns what to call with each request
 */
export function watchBodies(
  server: Server,
  everyMs: number,
  { bodyMs, restMs, silenceMs }: BodyPatience,
  late: (request: IncomingMessage) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  const waiting = new Set<Waiting>()

  const look = (one: Waiting, now: number): void => {
    const { request, response, begun } = one
    const { socket } = request
    if (request.complete || socket.destroyed) return void waiting.delete(one)
    if (socket.bytesRead > one.bytes) Object.assign(one, { bytes: socket.bytesRead, heard: now })
    if (!response.writableFinished) {
      if (now - begun < bodyMs || patient.has(request) || response.headersSent) return
      waiting.delete(one)
      return late(request)
    }
    one.answered ??= now
    if (now - Math.max(one.heard, one.answered) < silenceMs && now - one.answered < restMs) return
    waiting.delete(one)
    socket.destroySoon()
  }

  const timer = setInterval(() => {
    const now = performance.now()
    for (const one of waiting) look(one, now)
  }, everyMs).unref()
  server.once('close', () => clearInterval(timer))

  return (request, response) => {
    if (!announcesBody(request)) return
    const now = performance.now()
    const { bytesRead: bytes } = request.socket
    const one = { request, response, begun: now, bytes, heard: now }
    waiting.add(one)
    response.once('close', () => request.complete && waiting.delete(one))
  }
}

const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
