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
export type RecordedRequest = {
  method: string
  /** Path and query. */
  url: string
  /** In the order and spelling of the wire. */
  headers: Pair[]
  body: Buffer
  /** What has been written so far; a body that is too large to keep is counted only. */
  response: { status: number; headers: Pair[]; body: Buffer; bytes: number }
  /** When the last byte of it was there, in milliseconds of `performance.now()`. */
  receivedAt: number
  /** How it ended: answered to the end, cut by us, or left by whoever asked; pending until then. */
  outcome: Promise<'answered' | 'cut' | 'left'>
  /** When whoever asked went away before the end. */
  disconnectedAt?: number
}

/** What an answer is written with; every call after the other side has left does nothing. */
type ResponseWriter = {
  head(status: number, headers: Record<string, string>): void
  /** Resolves when more may be written; `keep: false` for bodies that are only counted. */
  write(bytes: Uint8Array | string, options?: { keep?: boolean }): Promise<void>
  end(): void
  /** Breaks the connection, with what was written on its way. */
  cut(): void
  /** Fires when whoever asked has left. */
  disconnected: AbortSignal
}

export type Responder = (seen: RecordedRequest, answer: ResponseWriter) => Promise<void> | void

export type RecordingServer = {
  /** Two addresses of the same server: one for the service, one for clients that come directly. */
  origin: string
  directOrigin: string
  readonly requests: RecordedRequest[]
  /** Answers the next requests one by one, before whatever else would. */
  respondNext(...answers: Responder[]): void
  /** Answers all requests from now on; without one they are answered as at first. */
  respondAlways(answering?: Responder): void
  /** Open connections at the address of the service. */
  connections(): Promise<number>
  /** Goes away: connections are refused until it is back at the same addresses. */
  goDown(): Promise<void>
  comeUp(): Promise<void>
}

/** An HTTP server on loopback that keeps the exact bytes of whatever is asked and answered. */
export async function startRecordingServer(
  t: Test,
  otherwise: Responder,
): Promise<RecordingServer> {
  const seen: RecordedRequest[] = []
  const queue: Responder[] = []
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
    requests: seen,
    respondNext: (...answers) => void queue.push(...answers),
    respondAlways: (answering = otherwise) => void (standing = answering),
    connections: () =>
      new Promise((resolve, reject) => {
        servers[0].getConnections((error, count) => (error ? reject(error) : resolve(count)))
      }),
    goDown: async () => void (await Promise.all(servers.map(close))),
    comeUp: async () =>
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

async function record(request: IncomingMessage): Promise<RecordedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: headerPairs(request.rawHeaders),
    body: Buffer.concat(chunks),
    response: { status: 0, headers: [], body: Buffer.alloc(0), bytes: 0 },
    receivedAt: performance.now(),
    outcome: new Promise(() => {}),
  }
}

function answerOf(seen: RecordedRequest, response: ServerResponse): ResponseWriter {
  const left = new AbortController()
  let cutByUs = false
  let goOn = (): void => {}
  response.on('drain', () => goOn())
  seen.outcome = new Promise(resolve =>
    response.once('close', () => {
      goOn()
      if (response.writableFinished) return resolve('answered')
      if (cutByUs) return resolve('cut')
      seen.disconnectedAt = performance.now()
      left.abort()
      resolve('left')
    }),
  )
  const note = (bytes: Uint8Array | string, keep: boolean): Buffer => {
    const buffer = Buffer.from(bytes as string)
    seen.response.bytes += buffer.length
    if (keep) seen.response.body = Buffer.concat([seen.response.body, buffer])
    return buffer
  }
  return {
    head(status, headers) {
      seen.response.status = status
      seen.response.headers = Object.entries(headers)
      response.writeHead(status, headers)
      response.flushHeaders()
    },
    async write(bytes, { keep = true } = {}) {
      if (left.signal.aborted) return
      const room = response.write(keep ? note(bytes, keep) : bytes)
      if (!keep) seen.response.bytes += bytes.length
      if (!room) await new Promise<void>(resolve => (goOn = resolve))
    },
    end: () => void (left.signal.aborted || response.end()),
    cut() {
      cutByUs = true
      // What is written is on its way before the connection breaks.
      response.socket?.destroySoon()
    },
    disconnected: left.signal,
  }
}

/** Header lines as Node gives them, in pairs. */
export function headerPairs(raw: readonly string[]): Pair[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]!] as const] : []))
}

/** A header of a request or an answer, whatever its spelling; several are joined. */
export function findHeader(headers: readonly Pair[], name: string): string | undefined {
  const values = headers.filter(([known]) => known.toLowerCase() === name.toLowerCase())
  return values.length === 0 ? undefined : values.map(([, value]) => value).join(', ')
}
