import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

type Pair = readonly [name: string, value: string]

/** A request and its answer. */
export type RecordedRequest = {
  method: string
  /** Path and query. */
  url: string
  /** In their original order and spelling. */
  headers: Pair[]
  body: Buffer
  /** The answer so far; `bytes` also counts bytes that are not stored in `body`. */
  response: { status: number; headers: Pair[]; body: Buffer; bytes: number }
  /** When its last byte had arrived, in milliseconds of `performance.now()`. */
  receivedAt: number
  /** How it ended: completely answered, cut by the server, or left by the client; pending until then. */
  outcome: Promise<'answered' | 'cut' | 'left'>
  /** When the client disconnected before the end. */
  disconnectedAt?: number
}

/** Writes an answer; calls after the client has disconnected do nothing. */
type ResponseWriter = {
  head(status: number, headers: Record<string, string>): void
  /** Resolves when more may be written; with `keep: false` bytes are counted but not stored. */
  write(bytes: Uint8Array | string, options?: { keep?: boolean }): Promise<void>
  end(): void
  /** Sends what was written and then breaks the connection. */
  cut(): void
  /** Aborts when the client has disconnected. */
  disconnected: AbortSignal
}

export type Responder = (seen: RecordedRequest, answer: ResponseWriter) => Promise<void> | void

export type RecordingServer = {
  /** Two addresses of the same server: one for the service, one for direct clients. */
  origin: string
  directOrigin: string
  readonly requests: RecordedRequest[]
  /** Sets the answers of the next requests, before all other answers. */
  respondNext(...answers: Responder[]): void
  /** Sets the answer of all requests from now on; without an argument the default one. */
  respondAlways(answering?: Responder): void
  /** Open connections at the address of the service. */
  connections(): Promise<number>
  /** Refuses connections until `comeUp`, which listens at the same addresses. */
  goDown(): Promise<void>
  comeUp(): Promise<void>
}

/** An HTTP server on loopback that records the exact bytes of requests and answers. */
export async function startRecordingServer(
  t: Test,
  otherwise: Responder,
): Promise<RecordingServer> {
  const seen: RecordedRequest[] = []
  const queue: Responder[] = []
  let currentResponder = otherwise

  const take: RequestListener = (request, response) => {
    record(request)
      .then(async one => {
        seen.push(one)
        const answering = queue.shift() ?? currentResponder
        await answering(one, answerOf(one, response))
      })
      // The client was killed during its request, or the responder failed.
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
    respondAlways: (answering = otherwise) => void (currentResponder = answering),
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
  // A port that was given back may be on loan to somebody for a moment.
  for (let isOpen = false; !isOpen;) {
    server.listen(port, '127.0.0.1')
    isOpen = await once(server, 'listening').then(
      () => true,
      async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') throw error
        await delay(100)
        return false
      },
    )
  }
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
  let continueWriting = (): void => {}
  response.on('drain', () => continueWriting())
  seen.outcome = new Promise(resolve =>
    response.once('close', () => {
      continueWriting()
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
      if (!room) await new Promise<void>(resolve => (continueWriting = resolve))
    },
    end: () => void (left.signal.aborted || response.end()),
    cut() {
      cutByUs = true
      // Flushes what is written before the connection breaks.
      response.socket?.destroySoon()
    },
    disconnected: left.signal,
  }
}

/** Pairs of name and value from `rawHeaders` of Node. */
export function headerPairs(raw: readonly string[]): Pair[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]!] as const] : []))
}

/** A header by its case-insensitive name; several values are joined. */
export function findHeader(headers: readonly Pair[], name: string): string | undefined {
  const values = headers.filter(([known]) => known.toLowerCase() === name.toLowerCase())
  return values.length === 0 ? undefined : values.map(([, value]) => value).join(', ')
}
