import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { Context } from 'koa'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { resolveSession } from '#api/edge/request.ts'
import { acceptClearing } from '#shared/vault/delete/clear-vault.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStorePermission } from '#shared/access/caller.ts'

/** Clears the whole vault of the key, or one session. */
export function clear(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'DELETE /v1/memory',
    auth: memoryKey(requireStorePermission),
    claims: 'by-handler',
    async handle({ caller, query, idempotency }, ctx) {
      const { reset } = query
      const session = sessionToClear(ctx, query.session_id)
      if (reset && session !== null) {
        throw new Refusal(
          'invalid',
          'reset cannot be used with a session',
          'A reset is of the whole vault; without reset the session alone is cleared',
        )
      }

      const { operation } = await idempotency.claim(null)
      await acceptClearing(backend, caller, {
        operation,
        session,
        reset,
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}

/**
 * The session to clear. A request that seems to mean one but names none must not
 * clear everything.
 *
 * @throws Refusal `invalid` for an empty header, or a body.
 */
function sessionToClear(ctx: Context, inQuery: string | undefined): string | null {
  const named = ctx.req.headers['x-session-id'] !== undefined
  const session = resolveSession(ctx, inQuery)
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
      'A session is named in the header X-Session-ID, or as session_id in the query',
    )
  }
  return session
}
