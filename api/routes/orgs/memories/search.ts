import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { SearchAsMemberBody } from '#api/contract/generated/types.ts'
import { roundShare } from '#api/present/memory.ts'
import { presentSharedMemory } from '#api/present/shared-memory.ts'
import { refusal } from '#shared/core/refusal.ts'
import { findViewer, type ViewerChoice } from '#shared/org/admin/user.ts'
import { readSensitivityRules } from '#shared/org/base/sensitivity-rules.ts'
import { searchAs } from '#shared/org/trail/search-as.ts'

/** What a member is given of the shared memory, shown to the admin. */
export function memberSearch(router: Router, backend: ApiBackend): void {
  const { query } = backend.postgres

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/memories/search',
    auth: loadedOrg,
    async handle({ org, body }, ctx) {
      const { teamMemberId, roles, scope } = await findViewer(query, org.id, toViewer(body))
      const [view, sensitivities] = await Promise.all([
        searchAs(backend, scope, { text: body.query, limit: body.limit }),
        readSensitivityRules(query, org.id),
      ])
      ctx.body = {
        org_id: org.id,
        team_member_id: teamMemberId,
        roles,
        allowed_tags: scope.allowedTags,
        wildcard: scope.wildcard,
        memories: view.seen.map(({ memory, score }) => ({
          ...presentSharedMemory(memory, sensitivities),
          ...(score !== undefined && { score: roundShare(score) }),
        })),
        kept_back: view.keptBack.map(({ memory, missingTags, openedBy }) => ({
          ...presentSharedMemory(memory, sensitivities),
          missing_tags: missingTags,
          opened_by: openedBy,
        })),
        permitted: view.permitted,
        dropped: view.dropped,
      }
    },
  })
}

function toViewer({ user_id: user, role_ids: roles }: SearchAsMemberBody): ViewerChoice {
  if (user !== undefined && roles === undefined) return { user }
  if (roles !== undefined && user === undefined) return { roles }
  throw refusal('invalid', 'userOrRoles')
}
