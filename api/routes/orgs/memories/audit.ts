import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import { presentAuditEvent } from '#api/present/shared-memory.ts'
import type { Backend } from '#shared/backend.ts'
import { readMemoryAudit as auditOfMemory } from '#shared/org/audit.ts'
import { parseSharedMemoryId } from '#shared/org/parse-params.ts'

/** Who changed one shared memory, and when. */
export function memoryAudit(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/memories/:memId/audit', async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    const events = await auditOfMemory(backend, { org: org.id }, id)
    ctx.body = {
      org_id: org.id,
      mem_id: id,
      count: events.length,
      events: events.map(presentAuditEvent),
    }
  })
}
