import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import { DebugPassesQuery } from '#api/contract/contract.ts'
import { presentEntry } from '#api/present/passes.ts'
import { queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { personOf } from '#shared/org/normalize.ts'
import { listTrail } from '#shared/org/trail.postgres.ts'

/** What was made of what members said, and what of the shared memory each was given. */
export function passes(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/debug/passes', async ctx => {
    const { org } = await orgOf(ctx, backend)
    const { limit, author } = queryOf(ctx, DebugPassesQuery)
    await backend.retrievals.flush()
    const entries = await listTrail(backend.postgres.query, {
      org: org.id,
      author: author === undefined ? null : personOf(author),
      limit,
    })
    ctx.body = { org_id: org.id, count: entries.length, passes: entries.map(presentEntry) }
  })
}
