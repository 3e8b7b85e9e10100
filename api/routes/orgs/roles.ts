import type { Router } from '@koa/router'
import { currentAdmin } from '#api/edge/admin-auth.ts'
import { ChangeRoleBody, CreateRoleBody } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentRole } from '#api/present/org.ts'
import { parseBody } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeRole, createRole, removeRole, listOrgRoles } from '#shared/org/role.ts'

/** Roles: what their holders may see of the shared memory. */
export function roles(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/roles'

  router.post(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { name, allowed_tags: allowedTags = [] } = await parseBody(ctx, CreateRoleBody)
    const role = await createRole(backend, orgAdmin, operationId(ctx), { name, allowedTags })
    ctx.status = 201
    ctx.body = presentRole(role)
  })

  router.get(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const rows = await listOrgRoles(backend, orgAdmin)
    ctx.body = { roles: rows.map(presentRole) }
  })

  router.patch(`${path}/:roleId`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { name, allowed_tags: allowedTags } = await parseBody(ctx, ChangeRoleBody)
    const role = await changeRole(backend, orgAdmin, ctx.params.roleId ?? '', { name, allowedTags })
    ctx.body = presentRole(role)
  })

  router.delete(`${path}/:roleId`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.roleId ?? ''
    await claimIdempotencyKey(ctx, null)
    await removeRole(backend, orgAdmin, id, operationId(ctx))
    ctx.body = { deleted: true, id }
  })
}
