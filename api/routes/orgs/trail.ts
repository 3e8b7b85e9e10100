import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentAuditEvent, presentNamedMemory } from '#api/present/shared-memory.ts'
import { parseStart } from '#shared/core/dates.ts'
import { normalizeMemberId } from '#shared/org/base/normalize.ts'
import type { NamedMemory } from '#api/contract/generated/types.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { pendingPartition, sharedByIds } from '#shared/org/memories/shared-memories.mongo.ts'
import { listAudit } from '#shared/org/memories/audit.postgres.ts'
import { memoriesNamedBy, presentTrailEntry } from '#api/present/org-trail.ts'
import { listTrail } from '#shared/org/base/org-trail.postgres.ts'

/** Memories whose words an answer has, by the contract. */
const namedMax = 2_000

/** Who changed what of the shared memory, what the passes extracted, and what was retrieved for each member. */
export function orgTrail(router: Router, backend: ApiBackend): void {
  // Read from the store with each request: what was removed meanwhile is not shown.
  const presentNamed = async (org: OrgRow, ids: readonly string[]): Promise<NamedMemory[]> => {
    const named = [...new Set(ids)].slice(0, namedMax)
    const memories = await sharedByIds(backend.mongo, org, named, ['', pendingPartition])
    return memories.map(presentNamedMemory)
  }

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/audit',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      const { actor, action, since: from, limit } = query
      const since = from === undefined ? undefined : parseStart(from)
      const filter = { actor: actor && normalizeMemberId(actor), action, since, limit }
      const events = await listAudit(backend.postgres.query, org.id, filter)
      ctx.body = {
        org_id: org.id,
        count: events.length,
        events: events.map(presentAuditEvent),
        memories: await presentNamed(
          org,
          events.map(({ memory }) => memory),
        ),
      }
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
      ctx.body = {
        org_id: org.id,
        count: entries.length,
        passes: entries.map(presentTrailEntry),
        memories: await presentNamed(org, entries.flatMap(memoriesNamedBy)),
      }
    },
  })
}
