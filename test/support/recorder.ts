import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

type Pair = readonly [name: string, value: string]

/** A request as it arrived, and what it was answered. */
export type Seen = {
  method: string
  /** Path and query. */
  url: string
  /** In the order and spelling of the wire. */
  headers: Pair[]
  body: Buffer
  /** What has been written so far; a body that is too large to keep is counted only. */
  sent: { status: number; headers: Pair[]; body: Buffer; bytes: number }
  /** When the last byte of it was there, in milliseconds of `performance.now()`. */
  at: number
  /** How it ended: answered to the end, cut by us, or left by whoever asked; pending until then. */
  ended: Promise<'answered' | 'cut' | 'left'>
  /** When whoever asked went away before the end. */
  leftAt?: number
}

/** What an answer is written with; every call after the other side has left does nothing. */
type Answer = {
  head(status: number, headers: Record<string, string>): void
  /** Resolves when more may be written; `keep: false` for bodies that are only counted. */
  write(bytes: Uint8Array | string, options?: { keep?: boolean }): Promise<void>
  end(): void
  /** Breaks the connection, with what was written on its way. */
  cut(): void
  /** Fires when whoever asked has left. */
  left: AbortSignal
}

export type Answering = (seen: Seen, answer: Answer) => Promise<void> | void

export type Recorder = {
  /** Two addresses of the same server: one for the service, one for clients that come directly. */
  origin: string
  directOrigin: string
  readonly seen: Seen[]
  /** Answers the next requests one by one, before whatever else would. */
  next(...answers: Answering[]): void
  /** Answers all requests from now on; without one they are answered as at first. */
  always(answering?: Answering): void
  /** Open connections at the address of the service. */
  connections(): Promise<number>
  /** Goes away: connections are refused until it is back at the same addresses. */
  down(): Promise<void>
  up(): Promise<void>
}

/** An HTTP server on loopback that keeps the exact bytes of whatever is asked and answered. */
export async function recorder(t: Test, otherwise: Answering): Promise<Recorder> {
  const seen: Seen[] = []
  const queue: Answering[] = []
  let standing = otherwise

  const take: RequestListener = (request, response) => {
    record(request)
      .then(async one => {
        seen.push(one)
        const answering = queue.shift() ?? standing
        await answering(one, answerOf(one, response))
      })
      // Whoever asked was killed in the middle of it, or an answer of ours is broken: both end here.
      .catch(() => response.destroy())
  }
  const servers = [createServer(take), createServer(take)] as const
  const ports = await Promise.all(servers.map(server => listen(server, 0)))
  t.teardown(() => Promise.all(servers.map(close)))
  return {
    origin: `http://127.0.0.1:${ports[0]}`,
    directOrigin: `http://127.0.0.1:${ports[1]}`,
    seen,
    next: (...answers) => void queue.push(...answers),
    always: (answering = otherwise) => void (standing = answering),
    connections: () =>
      new Promise((resolve, reject) => {
        servers[0].getConnections((error, count) => (error ? reject(error) : resolve(count)))
      }),
    down: async () => void (await Promise.all(servers.map(close))),
    up: async () =>
      void (await Promise.all(servers.map((server, index) => listen(server, ports[index]!)))),
  }
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function close(server: Server): Promise<void> {
  await new Promise(resolve => {
    server.close(resolve)
    server.closeAllConnections()
  })
}

async function record(request: IncomingMessage): Promise<Seen> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: pairs(request.rawHeaders),
    body: Buffer.concat(chunks),
    sent: { status: 0, headers: [], body: Buffer.alloc(0), bytes: 0 },
    at: performance.now(),
    ended: new Promise(() => {}),
  }
}

function answerOf(seen: Seen, response: ServerResponse): Answer {
  const left = new AbortController()
  let cutByUs = false
  let goOn = (): void => {}
  response.on('drain', () => goOn())
  seen.ended = new Promise(resolve =>
    response.once('close', () => {
      goOn()
      if (response.writableFinished) return resolve('answered')
      if (cutByUs) return resolve('cut')
      seen.leftAt = performance.now()
      left.abort()
      resolve('left')
    }),
  )
  const note = (bytes: Uint8Array | string, keep: boolean): Buffer => {
    const buffer = Buffer.from(bytes as string)
    seen.sent.bytes += buffer.length
    if (keep) seen.sent.body = Buffer.concat([seen.sent.body, buffer])
    return buffer
  }
  return {
    head(status, headers) {
      seen.sent.status = status
      seen.sent.headers = Object.entries(headers)
      response.writeHead(status, headers)
      response.flushHeaders()
    },
    async write(bytes, { keep = true } = {}) {
      if (left.signal.aborted) return
      const room = response.write(keep ? note(bytes, keep) : bytes)
      if (!keep) seen.sent.bytes += bytes.length
      if (!room) await new Promise<void>(resolve => (goOn = resolve))
    },
    end: () => void (left.signal.aborted || response.end()),
    cut() {
      cutByUs = true
      // What is written is on its way before the connection breaks.
      response.socket?.destroySoon()
    },
    left: left.signal,
  }
}

/** Header lines as Node gives them, in pairs. */
export function pairs(raw: readonly string[]): Pair[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]!] as const] : []))
}

/** A header of a request or an answer, whatever its spelling; several are joined. */
export function headerOf(headers: readonly Pair[], name: string): string | undefined {
  const values = headers.filter(([known]) => known.toLowerCase() === name.toLowerCase())
  return values.length === 0 ? undefined : values.map(([, value]) => value).join(', ')
}
