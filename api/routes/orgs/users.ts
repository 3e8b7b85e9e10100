import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { ChangeUserBody } from '#api/contract/generated/types.ts'
import { presentListedUser, presentUser } from '#api/present/org.ts'
import { mintUserKey } from '#shared/org/admin/member-keys.ts'
import { changeUser, createUser, removeUser, listOrgUsers } from '#shared/org/admin/user.ts'

/** Users: who belongs to an organization, and their private vaults. */
export function users(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/users',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const user = await createUser(backend, orgAdmin, claim.operation, toUserFields(body))
      ctx.status = 201
      ctx.body = presentUser(user)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/users',
    auth: orgAdmin,
    async handle({ orgAdmin }, ctx) {
      const rows = await listOrgUsers(backend, orgAdmin)
      ctx.body = { users: rows.map(presentListedUser) }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/users/:userId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, body }, ctx) {
      const user = await changeUser(
        backend,
        orgAdmin,
        params.userId,
        toUserFields({ email: undefined, ...body }),
      )
      ctx.body = presentUser(user)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/users/:userId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.userId
      await removeUser(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/users/:userId/memory-key',
    auth: orgAdmin,
    async handle({ orgAdmin, params }, ctx) {
      const id = params.userId
      const { key, rotated, createdAt } = await mintUserKey(backend, orgAdmin, id)
      ctx.status = 201
      ctx.body = {
        user_id: id.toLowerCase(),
        key,
        memory_key: key,
        rotated,
        created_at: createdAt.getTime(),
      }
    },
  })
}

const toUserFields = <Email>(body: Omit<ChangeUserBody, 'email'> & { email: Email }) => ({
  email: body.email,
  firstName: body.first_name,
  lastName: body.last_name,
  roleIds: body.role_ids,
})
