import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import { DebugPassesQuery } from '#api/contract/contract.ts'
import { presentTrailEntry } from '#api/present/org-trail.ts'
import { parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { normalizeMemberId } from '#shared/org/normalize.ts'
import { listTrail } from '#shared/org/org-trail.postgres.ts'

/** What was made of what members said, and what of the shared memory each was given. */
export function passes(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/debug/passes', async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    const { limit, author } = parseQuery(ctx, DebugPassesQuery)
    await backend.retrievals.flush()
    const entries = await listTrail(backend.postgres.query, {
      org: org.id,
      author: author === undefined ? null : normalizeMemberId(author),
      limit,
    })
    ctx.body = { org_id: org.id, count: entries.length, passes: entries.map(presentTrailEntry) }
  })
}
