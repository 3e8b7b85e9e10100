import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentAuditEvent } from '#api/present/shared-memory.ts'
import { parseStart } from '#shared/core/dates.ts'
import { normalizeMemberId } from '#shared/org/base/normalize.ts'
import { listAudit } from '#shared/org/memories/audit.postgres.ts'

/** Who changed what of the shared memory, and when. */
export function orgAudit(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/audit',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      const { actor, action, since: from, limit } = query
      const since = from === undefined ? undefined : parseStart(from)
      const filter = { actor: actor && normalizeMemberId(actor), action, since, limit }
      const events = await listAudit(backend.postgres.query, org.id, filter)
      ctx.body = { org_id: org.id, count: events.length, events: events.map(presentAuditEvent) }
    },
  })
}
