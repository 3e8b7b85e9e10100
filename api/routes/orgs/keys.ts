import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg, orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentKeyState, presentListedMemberKey, presentNewMemberKey } from '#api/present/org.ts'
import {
  revokeOrgMemberKey,
  mintMemberKey,
  readMemberKey,
  searchMemberKeys,
} from '#shared/org/admin/member-keys.ts'

/** Keys of members: each opens their private vault and what they may see of the shared one. */
export function memberKeys(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/keys',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const { team_member_id: teamMemberId, shares } = body
      const request = { teamMemberId, shares }
      const key = await mintMemberKey(backend, orgAdmin, claim.operation, request)
      ctx.status = 201
      ctx.body = presentNewMemberKey(key)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/keys',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      await backend.lastUsed.flush()
      const rows = await searchMemberKeys(backend, org.id, query.q)
      ctx.body = { keys: rows.map(presentListedMemberKey) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/keys/:keyId',
    auth: loadedOrg,
    async handle({ admin, org, params }, ctx) {
      await backend.lastUsed.flush()
      const key = await readMemberKey(backend, { admin, org: org.id }, params.keyId)
      ctx.body = { ...presentNewMemberKey(key), ...presentKeyState(key) }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/keys/:keyId',
    auth: orgAdmin,
    async handle({ orgAdmin, params }, ctx) {
      const id = await revokeOrgMemberKey(backend, orgAdmin, params.keyId)
      ctx.body = { deleted: true, id }
    },
  })
}
