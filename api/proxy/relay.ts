import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import { copyUpstreamHeaders } from '#api/proxy/response-headers.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** How a relayed answer ended: at its last byte, closed by the client, or cut off by the provider. */
export type RelayOutcome = 'complete' | 'client-closed' | 'interrupted'

type RelayOptions = {
  /** Called with the bytes that the client gets. */
  onBytes(bytes: Buffer): void
  /** Longest time in which the client takes none of the pending bytes. */
  clientTimeoutMs: number
  /**
   * What becomes of the response after a complete answer. `ended`: it ends in the same write as the last bytes.
   * Else the caller ends it with `endRelayedResponse`: `open` has sent all bytes by then; `held` holds the last
   * byte of an answer of known length back, where something is stored before the client may take it as ended.
   */
  end: 'ended' | 'open' | 'held'
}

/**
 * Relays a provider's answer byte for byte, at the pace of the client. An interrupted answer closes the client's
 * connection. A client that stops reading is disconnected.
 */
export async function relay(
  ctx: Context,
  answer: UpstreamResponse,
  { onBytes, clientTimeoutMs, end }: RelayOptions,
): Promise<RelayOutcome> {
  const { res } = ctx
  copyUpstreamHeaders(ctx, answer)
  ctx.respond = false
  destroyWhenStalled(res, clientTimeoutMs)
  const heldBytes = end === 'held' ? heldBytesOf(ctx, answer) : undefined
  // A model may think for long before the first event.
  if (/event-stream/i.test(ctx.response.get('content-type')) && isOpen(res)) res.flushHeaders()
  const outcome = await copyBody(answer.body, res, {
    toSent(bytes) {
      onBytes(bytes)
      return heldBytes ? heldBytes.replace(bytes) : bytes
    },
    onComplete: () => end === 'ended' && endRelayedResponse(ctx),
  })
  // The client still gets the pending bytes, but no regular end: the answer is not complete.
  if (outcome !== 'complete') res.socket?.destroySoon()
  return outcome
}

const isOpen = (res: ServerResponse): boolean => !res.closed && !res.destroyed

type CopyHandlers = {
  /** What is written of the bytes that have come. */
  toSent(bytes: Buffer): Buffer
  /** Called when all bytes are written, and perhaps not sent. */
  onComplete(): void
}

/**
 * Writes a body to a response, as fast as the client takes it. The listeners are our own: a pipeline with a
 * Transform costs a third of a whole call without memory.
 */
function copyBody(
  body: Readable,
  res: ServerResponse,
  { toSent, onComplete }: CopyHandlers,
): Promise<RelayOutcome> {
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

/**
 * Uses the socket's idle timeout, which restarts with every write. It also fires while the provider sends
 * nothing: then no bytes are pending, and the connection stays.
 */
function destroyWhenStalled(res: ServerResponse, timeoutMs: number): void {
  res.setTimeout(timeoutMs, () => {
    if (res.writableLength > 0) res.destroy()
  })
}

/** The last byte of an answer of known length: with it a client would take the response as ended. */
class HeldBytes {
  last: Buffer = Buffer.alloc(0)

  /** @returns what may be sent once these bytes have come. */
  replace(bytes: Buffer): Buffer {
    if (bytes.length === 0) return bytes
    const sent = this.last.length > 0 ? Buffer.concat([this.last, bytes]) : bytes
    this.last = sent.subarray(-1)
    return sent.subarray(0, -1)
  }
}

function heldBytesOf({ state }: Context, { headers }: UpstreamResponse): HeldBytes | undefined {
  if (headers['content-length'] === undefined) return undefined
  return (state.heldBytes = new HeldBytes())
}

/** Ends the response to the client, unless it has ended or the connection is closed. */
export function endRelayedResponse({ respond, res, state }: Context): void {
  if (respond !== false || res.writableEnded || !res.socket?.writable) return
  const { last } = (state.heldBytes as HeldBytes | undefined) ?? new HeldBytes()
  res.end(last)
}

/** @returns a controller that aborts when the client closes the connection before its response has ended. */
export function clientAbortController({ res }: Context): AbortController {
  const controller = new AbortController()
  const abort = (): void => {
    if (!res.writableFinished) controller.abort()
  }
  if (res.closed) abort()
  else res.once('close', abort)
  return controller
}
