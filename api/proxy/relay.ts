import type { ServerResponse } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Context } from 'koa'
import { handOn } from '#api/proxy/headers.ts'
import type { UpstreamAnswer } from '#shared/models/upstream.ts'

/** How an answer ended: to its last byte, left by the client, or broken off by the provider. */
export type Ending = 'whole' | 'left' | 'broken'

type Listening = {
  /** Hears the same bytes as the client. */
  hear(bytes: Buffer): void
  /** How long the client may take none of the bytes that wait for it. */
  patienceMs: number
}

/**
 * Answers with what a provider answers, byte for byte as it arrives and as fast as the client reads. Of an answer that came whole the client sees every byte, but not
 * the end: that is left to the caller (`endRelayed`), when it has stored what was heard. One that
 * breaks off ends with the connection, as it did at the provider's. A client that has stopped reading is
 * left, as if it had hung up.
 */
export async function relay(
  ctx: Context,
  answer: UpstreamAnswer,
  { hear, patienceMs }: Listening,
): Promise<Ending> {
  const { res } = ctx
  handOn(ctx, answer)
  ctx.respond = false
  leaveWhenUnread(res, patienceMs)
  const listening = new Transform({
    transform(bytes: Buffer, _, onward) {
      hear(bytes)
      onward(null, bytes)
    },
  })
  // Each failure brings on the other: the first is the cause.
  let ending: Ending = 'whole'
  const ended = (how: Ending) => (): void => void (ending === 'whole' && (ending = how))
  res.once('close', ended('left'))
  answer.body.once('error', ended('broken'))
  try {
    // A model may think for long after its stream has begun.
    if (/event-stream/i.test(ctx.response.get('content-type'))) res.flushHeaders()
    await pipeline(answer.body, listening, res, { end: false })
    return 'whole'
  } catch {
    // What came before the break still reaches the client; the end, which says that this was all, must not.
    res.socket?.destroySoon()
    return ending === 'whole' ? 'broken' : ending
  }
}

/**
 * The socket's own clock: it starts again with every byte that is taken. It also runs while nothing is
 * there to be read, which is nobody's fault here.
 */
function leaveWhenUnread(res: ServerResponse, patienceMs: number): void {
  res.setTimeout(patienceMs, () => {
    if (res.writableLength > 0) res.destroy()
  })
}

/** Tells the client that what was relayed has ended, unless the connection has been broken off. */
export function endRelayed({ respond, res }: Context): void {
  if (respond === false && res.socket?.writable) res.end()
}

/** Fires when the client hangs up before its answer is complete; pass it to whatever is waited for. */
export function hangUp({ res }: Context): AbortSignal {
  const left = new AbortController()
  const leave = (): void => {
    if (!res.writableFinished) left.abort()
  }
  if (res.closed) leave()
  else res.once('close', leave)
  return left.signal
}
