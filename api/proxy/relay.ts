import type { ServerResponse } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
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
}

/**
 * Relays a provider's answer byte for byte, at the pace of the client. After a complete answer the
 * response stays open: the caller stores the reply first and then calls `endRelayedResponse`. An
 * interrupted answer closes the client's connection. A client that stops reading is disconnected.
 */
export async function relay(
  ctx: Context,
  answer: UpstreamResponse,
  { onBytes, clientTimeoutMs }: RelayOptions,
): Promise<RelayOutcome> {
  const { res } = ctx
  copyUpstreamHeaders(ctx, answer)
  ctx.respond = false
  destroyWhenStalled(res, clientTimeoutMs)
  const tap = new Transform({
    transform(bytes: Buffer, _, callback) {
      onBytes(bytes)
      callback(null, bytes)
    },
  })
  // Either failure triggers the other: the first one is the cause.
  let outcome: RelayOutcome = 'complete'
  const setOutcome = (cause: RelayOutcome) => (): void =>
    void (outcome === 'complete' && (outcome = cause))
  res.once('close', setOutcome('client-closed'))
  answer.body.once('error', setOutcome('interrupted'))
  try {
    // A model may think for long before the first event.
    if (/event-stream/i.test(ctx.response.get('content-type'))) res.flushHeaders()
    await pipeline(answer.body, tap, res, { end: false })
    return 'complete'
  } catch {
    // The client still gets the pending bytes, but no regular end: the answer is not complete.
    res.socket?.destroySoon()
    return outcome === 'complete' ? 'interrupted' : outcome
  }
}

/**
 * Uses the socket's idle timeout, which restarts with every write. It also fires while the provider sends
 * nothing: then no bytes are pending, and the connection stays.
 */
function destroyWhenStalled(res: ServerResponse, timeoutMs: number): void {
  res.setTimeout(timeoutMs, () => {
    if (res.writableLength > 0) res.destroy()
  })
}

/** Ends the response to the client, unless the connection is closed. */
export function endRelayedResponse({ respond, res }: Context): void {
  if (respond === false && res.socket?.writable) res.end()
}

/** @returns a signal that aborts when the client closes the connection before its response has ended. */
export function clientAbortSignal({ res }: Context): AbortSignal {
  const controller = new AbortController()
  const abort = (): void => {
    if (!res.writableFinished) controller.abort()
  }
  if (res.closed) abort()
  else res.once('close', abort)
  return controller.signal
}
