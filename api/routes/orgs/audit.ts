import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import { OrgAuditQuery } from '#api/contract/contract.ts'
import { presentAuditEvent } from '#api/present/shared-memory.ts'
import { parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { normalizeMemberId } from '#shared/org/normalize.ts'
import { listAudit } from '#shared/org/audit.postgres.ts'

/** Who changed what of the shared memory, and when. */
export function orgAudit(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/audit', async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    const { actor, action, since, limit } = parseQuery(ctx, OrgAuditQuery)
    const filter = { actor: actor && normalizeMemberId(actor), action, since, limit }
    const events = await listAudit(backend.postgres.query, org.id, filter)
    ctx.body = { org_id: org.id, count: events.length, events: events.map(presentAuditEvent) }
  })
}
