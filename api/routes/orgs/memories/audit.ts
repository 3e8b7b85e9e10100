import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { reviewedMemory } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentAuditEvent } from '#api/present/shared-memory.ts'
import { readMemoryAudit } from '#shared/org/memories/restore-shared-memory.ts'

/** Who changed one shared memory, and when. */
export function memoryAudit(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/memories/:memId/audit',
    auth: reviewedMemory,
    async handle({ org, id }, ctx) {
      const events = await readMemoryAudit(backend, { org: org.id }, id)
      ctx.body = {
        org_id: org.id,
        mem_id: id,
        count: events.length,
        events: events.map(presentAuditEvent),
      }
    },
  })
}
