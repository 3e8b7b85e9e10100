import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentTrailEntry } from '#api/present/org-trail.ts'
import { normalizeMemberId } from '#shared/org/base/normalize.ts'
import { listTrail } from '#shared/org/base/org-trail.postgres.ts'

/** The extractions from members' messages, and the shared memories retrieved for each member. */
export function passes(router: Router, backend: ApiBackend): void {
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
