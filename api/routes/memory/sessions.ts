import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { listSessions, type ListedSession } from '#shared/vault/read/lists/sessions.postgres.ts'

/** Pages through the sessions of a vault. */
export function sessions(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/memory/sessions',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query }, ctx) {
      const { limit, cursor } = query
      const page = await listSessions(backend, caller, { limit, cursor })
      ctx.body = presentPage(page, presentSession)
    },
  })
}

const presentSession = ({ session, memories, first, last, storedAt }: ListedSession) => ({
  session_id: session,
  memories,
  first_at: first.toISOString(),
  last_at: last.toISOString(),
  stored_at: storedAt.toISOString(),
})
