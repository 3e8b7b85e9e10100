import type { Context } from 'koa'
import { Refusal } from '#shared/core/errors.ts'

/** Aborts with a Refusal `unavailable` once the client has closed the connection before its response has ended. */
export function clientSignal({ res }: Pick<Context, 'res'>): AbortSignal {
  const controller = new AbortController()
  const abort = (): void => {
    if (res.writableFinished) return
    controller.abort(new Refusal('unavailable', 'The client has closed the connection'))
  }
  if (res.closed) abort()
  else res.once('close', abort)
  return controller.signal
}
