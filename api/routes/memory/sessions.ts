import type { Router } from '@koa/router'
import { ListSessionsQuery } from '#api/contract/contract.ts'
import { callerOf, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve } from '#shared/access/caller.ts'
import { listSessions, type ListedSession } from '#shared/vault/read/sessions.ts'

/** Pages through the sessions of a vault. */
export function sessions(router: Router, backend: Backend): void {
  router.get('/v1/memory/sessions', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const { limit, cursor } = queryOf(ctx, ListSessionsQuery)
    const { sessions, next } = await listSessions(backend, caller, { limit, cursor })
    ctx.body = { items: sessions.map(present), has_more: next !== null, next_cursor: next }
  })
}

const present = ({ session, memories, first, last, storedAt }: ListedSession) => ({
  session_id: session,
  memories,
  first_at: first.toISOString(),
  last_at: last.toISOString(),
  stored_at: storedAt.toISOString(),
})
