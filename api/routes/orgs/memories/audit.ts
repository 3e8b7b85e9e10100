import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import { presentEvent } from '#api/present/shared-memory.ts'
import type { Backend } from '#shared/backend.ts'
import { memoryAudit as auditOfMemory } from '#shared/org/audit.ts'
import { sharedIdOf } from '#shared/org/parse-params.ts'

/** Who changed one shared memory, and when. */
export function memoryAudit(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/memories/:memId/audit', async ctx => {
    const { org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    const events = await auditOfMemory(backend, { org: org.id }, id)
    ctx.body = {
      org_id: org.id,
      mem_id: id,
      count: events.length,
      events: events.map(presentEvent),
    }
  })
}
