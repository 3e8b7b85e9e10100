import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import { OrgAuditQuery } from '#api/contract/contract.ts'
import { presentEvent } from '#api/present/shared-memory.ts'
import { queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { personOf } from '#shared/org/normalize.ts'
import { listAudit } from '#shared/org/audit.postgres.ts'

/** Who changed what of the shared memory, and when. */
export function orgAudit(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/audit', async ctx => {
    const { org } = await orgOf(ctx, backend)
    const { actor, action, since, limit } = queryOf(ctx, OrgAuditQuery)
    const filter = { actor: actor && personOf(actor), action, since, limit }
    const events = await listAudit(backend.postgres.query, org.id, filter)
    ctx.body = { org_id: org.id, count: events.length, events: events.map(presentEvent) }
  })
}
