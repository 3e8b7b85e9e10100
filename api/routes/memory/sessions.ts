import type { Router } from '@koa/router'
import { ListSessionsQuery } from '#api/contract/contract.ts'
import { authenticateRequest, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { listSessions, type ListedSession } from '#shared/vault/read/sessions.ts'

/** Pages through the sessions of a vault. */
export function sessions(router: Router, backend: Backend): void {
  router.get('/v1/memory/sessions', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const { limit, cursor } = parseQuery(ctx, ListSessionsQuery)
    const { sessions, next } = await listSessions(backend, caller, { limit, cursor })
    ctx.body = { items: sessions.map(presentSession), has_more: next !== null, next_cursor: next }
  })
}

const presentSession = ({ session, memories, first, last, storedAt }: ListedSession) => ({
  session_id: session,
  memories,
  first_at: first.toISOString(),
  last_at: last.toISOString(),
  stored_at: storedAt.toISOString(),
})
