import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { ClearMemoryQuery } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { answerQueued, respondsAsync } from '#api/edge/queued.ts'
import { callerOf, queryOf, sessionOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptClearing } from '#shared/vault/delete/clear.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStore } from '#shared/access/caller.ts'

/** Empties everything the key has, or one session of it. */
export function clear(router: Router, backend: Backend): void {
  router.delete('/v1/memory', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const { reset } = queryOf(ctx, ClearMemoryQuery)
    const session = meantSession(ctx)
    if (reset && session !== null) {
      throw new Refusal(
        'invalid',
        'reset cannot be used with X-Session-ID',
        'A reset is of the whole vault; without reset the session alone is cleared',
      )
    }
    await claimed(ctx, null)

    const operation = operationOf(ctx)
    await acceptClearing(backend, caller, {
      operation,
      session,
      reset,
      awaited: !respondsAsync(ctx),
    })
    await answerQueued(ctx, backend, caller, operation)
  })
}

/**
 * The session to clear. A request that seems to mean one, and does not say which where we read it, must
 * not clear everything.
 *
 * @throws Refusal `invalid` for an empty header, or a body.
 */
function meantSession(ctx: Context): string | null {
  const named = ctx.req.headers['x-session-id'] !== undefined
  const session = sessionOf(ctx)
  if (named && session === null) {
    throw new Refusal(
      'invalid',
      'X-Session-ID is empty',
      'Name the session, or leave the header out to clear everything',
    )
  }
  const hasBody = (ctx.request.length ?? 0) > '{}'.length || ctx.get('transfer-encoding') !== ''
  if (hasBody) {
    throw new Refusal(
      'invalid',
      'DELETE /v1/memory takes no body',
      'A session is named in the header X-Session-ID',
    )
  }
  return session
}
