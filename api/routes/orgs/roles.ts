import type { Router } from '@koa/router'
import { actingAdmin } from '#api/edge/admin.ts'
import { ChangeRoleBody, CreateRoleBody } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentRole } from '#api/present/org.ts'
import { bodyOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeRole, createRole, removeRole, rolesOf } from '#shared/org/role.ts'

/** Roles: what their holders may see of the shared memory. */
export function roles(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/roles'

  router.post(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { name, allowed_tags: allowedTags = [] } = await bodyOf(ctx, CreateRoleBody)
    const role = await createRole(backend, acting, operationOf(ctx), { name, allowedTags })
    ctx.status = 201
    ctx.body = presentRole(role)
  })

  router.get(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const rows = await rolesOf(backend, acting)
    ctx.body = { roles: rows.map(presentRole) }
  })

  router.patch(`${path}/:roleId`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { name, allowed_tags: allowedTags } = await bodyOf(ctx, ChangeRoleBody)
    const role = await changeRole(backend, acting, ctx.params.roleId ?? '', { name, allowedTags })
    ctx.body = presentRole(role)
  })

  router.delete(`${path}/:roleId`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.roleId ?? ''
    await claimed(ctx, null)
    await removeRole(backend, acting, id, operationOf(ctx))
    ctx.body = { deleted: true, id }
  })
}
