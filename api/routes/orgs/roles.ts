import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentRole } from '#api/present/org.ts'
import { changeRole, createRole, removeRole, listOrgRoles } from '#shared/org/admin/role.ts'

/** Roles: which tags of the shared memory their members may see. */
export function roles(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/roles',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const { name, allowed_tags: allowedTags = [] } = body
      const role = await createRole(backend, orgAdmin, claim.operation, { name, allowedTags })
      ctx.status = 201
      ctx.body = presentRole(role)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/roles',
    auth: orgAdmin,
    async handle({ orgAdmin }, ctx) {
      const rows = await listOrgRoles(backend, orgAdmin)
      ctx.body = { roles: rows.map(presentRole) }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/roles/:roleId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, body }, ctx) {
      const { name, allowed_tags: allowedTags } = body
      const role = await changeRole(backend, orgAdmin, params.roleId, { name, allowedTags })
      ctx.body = presentRole(role)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/roles/:roleId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.roleId
      await removeRole(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })
}
