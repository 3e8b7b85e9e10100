import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admin } from '#api/edge/auth.ts'
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
    auth: admin,
    async handle({ admin, params, body, claim }, ctx) {
      const key = await mintMemberKey(backend, admin, {
        org: params.orgId,
        teamMemberId: body.team_member_id,
        shares: body.shares,
        operation: claim.operation,
      })
      ctx.status = 201
      ctx.body = presentNewMemberKey(key)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/keys',
    auth: admin,
    async handle({ admin, params, query }, ctx) {
      const { q } = query
      await backend.lastUsed.flush()
      const rows = await searchMemberKeys(backend, admin, params.orgId, q)
      ctx.body = { keys: rows.map(presentListedMemberKey) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/keys/:keyId',
    auth: admin,
    async handle({ admin, params }, ctx) {
      const { orgId, keyId } = params
      await backend.lastUsed.flush()
      const key = await readMemberKey(backend, admin, orgId, keyId)
      ctx.body = { ...presentNewMemberKey(key), ...presentKeyState(key) }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/keys/:keyId',
    auth: admin,
    async handle({ admin, params }, ctx) {
      const { orgId, keyId } = params
      const id = await revokeOrgMemberKey(backend, admin, orgId, keyId)
      ctx.body = { deleted: true, id }
    },
  })
}
