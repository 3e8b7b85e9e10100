import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { reviewedMemory, sharedMemory } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import {
  presentRevision,
  presentSharedMemory,
  presentAuditEvent,
} from '#api/present/shared-memory.ts'
import { requireAccountBalance } from '#shared/billing/admission-checks.ts'
import {
  readHistory,
  restoreSharedMemory,
  readMemoryAudit,
} from '#shared/org/memories/restore-shared-memory.ts'
import { toOrgVault } from '#shared/org/memories/shared-change.ts'
import { readSensitivityRules } from '#shared/org/base/sensitivity-rules.ts'

/** The revisions and the audit of a shared memory, and restoring a revision. */
export function memoryHistory(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/memories/:memId/history',
    auth: reviewedMemory,
    async handle({ org, id }, ctx) {
      const revisions = await readHistory(backend, { org: org.id }, id)
      ctx.body = {
        org_id: org.id,
        mem_id: id,
        count: revisions.length,
        revisions: revisions.map(presentRevision),
      }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/memories/:memId/restore',
    auth: sharedMemory,
    async handle({ admin, org, id, body, claim }, ctx) {
      const { event_id: event } = body
      await requireAccountBalance(backend.postgres.query, org.account)
      const by = { operation: claim.operation, actor: admin.email }
      const memory = await restoreSharedMemory(backend, toOrgVault(org), { ...by, id, event })
      ctx.body = presentSharedMemory(
        memory,
        await readSensitivityRules(backend.postgres.query, org.id),
      )
    },
  })

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
