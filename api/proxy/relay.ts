import type { ServerResponse } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Context } from 'koa'
import { copyUpstreamHeaders } from '#api/proxy/response-headers.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** How a relayed answer ended: at its last byte, closed by the client, or cut off by the provider. */
export type RelayOutcome = 'complete' | 'client-closed' | 'interrupted'

type RelayOptions = {
  /** Hears the same bytes as the client. */
  onBytes(bytes: Buffer): void
  /** How long the client may take none of the bytes that wait for it. */
  clientTimeoutMs: number
}

/**
 * Answers with what a provider answers, byte for byte as it arrives and as fast as the client reads. Of an answer that came whole the client sees every byte, but not
 * the end: that is left to the caller (`endRelayed`), when it has stored what was heard. One that
 * breaks off ends with the connection, as it did at the provider's. A client that has stopped reading is
 * left, as if it had hung up.
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
  // Each failure brings on the other: the first is the cause.
  let outcome: RelayOutcome = 'complete'
  const setOutcome = (how: RelayOutcome) => (): void =>
    void (outcome === 'complete' && (outcome = how))
  res.once('close', setOutcome('client-closed'))
  answer.body.once('error', setOutcome('interrupted'))
  try {
    // A model may think for long after its stream has begun.
    if (/event-stream/i.test(ctx.response.get('content-type'))) res.flushHeaders()
    await pipeline(answer.body, tap, res, { end: false })
    return 'complete'
  } catch {
    // What came before the break still reaches the client; the end, which says that this was all, must not.
    res.socket?.destroySoon()
    return outcome === 'complete' ? 'interrupted' : outcome
  }
}

/**
 * The socket's own clock: it starts again with every byte that is taken. It also runs while nothing is
 * there to be read, which is nobody's fault here.
 */
function destroyWhenStalled(res: ServerResponse, timeoutMs: number): void {
  res.setTimeout(timeoutMs, () => {
    if (res.writableLength > 0) res.destroy()
  })
}

/** Tells the client that what was relayed has ended, unless the connection has been broken off. */
export function endRelayedResponse({ respond, res }: Context): void {
  if (respond === false && res.socket?.writable) res.end()
}

/** Fires when the client hangs up before its answer is complete; pass it to whatever is waited for. */
export function clientAbortSignal({ res }: Context): AbortSignal {
  const controller = new AbortController()
  const abort = (): void => {
    if (!res.writableFinished) controller.abort()
  }
  if (res.closed) abort()
  else res.once('close', abort)
  return controller.signal
}
