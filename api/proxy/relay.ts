import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { StoredResponse } from '#api/proxy/idempotency.ts'
import {
  isRelayedHeader,
  namesIn,
  ownHeaders,
  type AnswerFacts,
} from '#api/proxy/response-headers.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** How a relayed answer ended: at its last byte, closed by the client, or cut off by the provider. */
export type RelayOutcome = 'complete' | 'client-closed' | 'interrupted'

/** The answer to the client of a call, from its headers to its end. */
export class ClientAnswer {
  /** What its headers state; they are written once, with what is known by then. */
  readonly facts: AnswerFacts = { startedAt: performance.now(), providerMs: 0 }
  readonly #ctx: Context
  /** Aborts when the client closes the connection before its response has ended. */
  readonly #abort = new AbortController()
  #isHeadWritten = false
  /** The bytes held back: the last one of an answer of known length. */
  #held: Buffer = noBytes

  constructor(ctx: Context) {
    this.#ctx = ctx
    const { res } = ctx
    const abort = (): void => {
      if (!res.writableFinished) this.#abort.abort()
    }
    if (res.closed) abort()
    else res.once('close', abort)
  }

  /** Aborts the work of the provider. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  abort(): void {
    this.#abort.abort()
  }

  /** Awaits the work and counts its duration as the provider's. */
  async timeProvider<Result>(work: Promise<Result>): Promise<Result> {
    const calledAt = performance.now()
    try {
      return await work
    } finally {
      this.facts.providerMs = performance.now() - calledAt
    }
  }

  /** Writes the headers of an answer of our own, unless those of a provider's were written. */
  writeHead(upstream?: UpstreamResponse): void {
    const { res } = this.#ctx
    if (this.#isHeadWritten || res.headersSent) return
    this.#isHeadWritten = true
    for (const [name, value] of Object.entries(ownHeaders(this.facts))) res.setHeader(name, value)
    if (!upstream) return
    this.#ctx.status = upstream.status
    this.#ctx.respond = false
    const { headers } = upstream
    const ofConnection = namesIn(headers.connection)
    for (const [name, value] of Object.entries(headers))
      if (value !== undefined && isRelayedHeader(name) && !ofConnection.includes(name))
        res.setHeader(name, value)
  }

  /**
   * Relays a provider's answer byte for byte, at the pace of the client. An interrupted answer closes the client's
   * connection. A client that stops reading is disconnected.
   */
  async relay(
    answer: UpstreamResponse,
    options: {
      /** Called with the bytes that the client gets. */
      onBytes?(bytes: Buffer): void
      /** Longest time in which the client takes none of the pending bytes. */
      clientTimeoutMs: number
      /**
       * What becomes of the response after a complete answer. `ended`: it ends in the same write as the last bytes. Else
       * the caller calls `end`: `open` has sent all bytes by then; `held` holds the last byte of an answer of known length
       * back, where something is stored before the client may take it as ended.
       */
      end: 'ended' | 'open' | 'held'
    },
  ): Promise<RelayOutcome> {
    const { onBytes, clientTimeoutMs, end } = options
    const { res } = this.#ctx
    this.writeHead(answer)
    // The socket's idle timeout restarts with every write. It also fires while the provider sends nothing: then no
    // bytes are pending, and the connection stays.
    res.setTimeout(clientTimeoutMs, () => {
      if (res.writableLength > 0) res.destroy()
    })
    const isHeld = end === 'held' && answer.headers['content-length'] !== undefined
    // A model may think for long before the first event.
    if (/event-stream/i.test(String(answer.headers['content-type'])) && isOpen(res))
      res.flushHeaders()
    const outcome = await copyBody(answer.body, res, {
      toSent: bytes => {
        onBytes?.(bytes)
        return isHeld ? this.#hold(bytes) : bytes
      },
      onComplete: () => end === 'ended' && this.end(),
    })
    // The client still gets the pending bytes, but no regular end: the answer is not complete.
    if (outcome !== 'complete') res.socket?.destroySoon()
    return outcome
  }

  /** @returns what may be sent once these bytes have come: with the last one the client would take the answer as ended. */
  #hold(bytes: Buffer): Buffer {
    if (bytes.length === 0) return bytes
    const sent = this.#held.length > 0 ? Buffer.concat([this.#held, bytes]) : bytes
    this.#held = sent.subarray(-1)
    return sent.subarray(0, -1)
  }

  /** Ends a relayed response, unless it has ended or the connection is closed. */
  end(): void {
    const { respond, res } = this.#ctx
    if (respond === false && !res.writableEnded && res.socket?.writable) res.end(this.#held)
  }

  /** Answers with a stored response. */
  replay({ status, type, body }: NonNullable<StoredResponse>): void {
    this.#ctx.status = status
    if (type !== '') this.#ctx.set('Content-Type', type)
    this.#ctx.body = Buffer.from(body, 'base64')
  }

  /** Ends a call whose client has left, and who gets no error: it is logged as status 499. */
  abandon(): void {
    this.#ctx.respond = false
    this.#ctx.status = 499
  }
}

const noBytes = Buffer.alloc(0)

const isOpen = (res: ServerResponse): boolean => !res.closed && !res.destroyed

/**
 * Writes a body to a response, as fast as the client takes it. The listeners are our own: a pipeline with a Transform
 * costs a third of a whole call without memory.
 */
function copyBody(
  body: Readable,
  res: ServerResponse,
  handlers: {
    /** What is written of the bytes that have come. */
    toSent(bytes: Buffer): Buffer
    /** Called when all bytes are written, and perhaps not sent. */
    onComplete(): void
  },
): Promise<RelayOutcome> {
  const { toSent, onComplete } = handlers
  return new Promise(resolve => {
    const settle = (outcome: RelayOutcome): void => {
      body.off('data', write).off('end', onEnd).off('close', onInterrupted)
      res.off('drain', resume).off('close', onClientClosed)
      // Destroying it is an error of the stream, too.
      if (outcome !== 'complete') body.destroy()
      resolve(outcome)
    }
    const onEnd = (): void => {
      settle('complete')
      onComplete()
    }
    const onInterrupted = (): void => settle('interrupted')
    const onClientClosed = (): void => settle('client-closed')
    const resume = (): void => void body.resume()
    const write = (bytes: Buffer): void => {
      try {
        const sent = toSent(bytes)
        if (sent.length > 0 && !res.write(sent)) body.pause()
      } catch {
        settle('interrupted')
      }
    }
    body.on('error', onInterrupted)
    res.on('error', ignoreError)
    if (!isOpen(res)) return onClientClosed()
    if (body.destroyed && !body.readableEnded) return onInterrupted()
    body.once('end', onEnd).once('close', onInterrupted)
    res.on('drain', resume).once('close', onClientClosed)
    body.on('data', write)
  })
}

/** A write after the client has closed the connection: its `close` is what counts. */
const ignoreError = (): void => {}
