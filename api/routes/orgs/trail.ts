import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentAuditEvent } from '#api/present/shared-memory.ts'
import { parseStart } from '#shared/core/dates.ts'
import { normalizeMemberId } from '#shared/org/base/normalize.ts'
import { listAudit } from '#shared/org/memories/audit.postgres.ts'
import { presentTrailEntry } from '#api/present/org-trail.ts'
import { listTrail } from '#shared/org/base/org-trail.postgres.ts'

/** Who changed what of the shared memory, what the passes extracted, and what was retrieved for each member. */
export function orgTrail(router: Router, backend: ApiBackend): void {
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

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/debug/passes',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      const { limit, author, state } = query
      await backend.retrievals.flush()
      const entries = await listTrail(backend.postgres.query, {
        org: org.id,
        author: author === undefined ? null : normalizeMemberId(author),
        state,
        limit,
      })
      ctx.body = { org_id: org.id, count: entries.length, passes: entries.map(presentTrailEntry) }
    },
  })
}
