import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireMemberKey } from '#shared/org/admin/member-keys.ts'
import { assignRoles, ensureUser, requireUser } from '#shared/org/admin/user.ts'

/** Gives a member, named by themselves or by their key, exactly these roles. */
export function roleAssignments(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/role-assignments',
    auth: admin,
    async handle({ admin, params, body }, ctx) {
      const org = params.orgId
      const { team_member_id: name, key_id: key } = body
      if ((name === undefined) === (key === undefined)) {
        throw new Refusal(
          'invalid',
          'team_member_id or key_id is required, and not both',
          'Name the member, or one of their keys',
        )
      }
      const user = await assignRoles(backend, { admin, org }, body.role_ids, async tx => {
        if (name !== undefined) return ensureUser(tx, { admin, org }, name)
        const { user } = await requireMemberKey(tx.query, backend, org, key ?? '')
        return requireUser(tx.query, org, user)
      })
      ctx.body = {
        user_id: user.id,
        team_member_id: user.teamMemberId,
        role_ids: user.roles.map(role => role.role_id),
      }
    },
  })
}
