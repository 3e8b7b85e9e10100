import type { Router } from '@koa/router'
import { actedByAdmin, actingAdmin } from '#api/edge/admin.ts'
import { ChangeUserBody, CreateUserBody } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentListedUser, presentUser } from '#api/present/org.ts'
import { bodyOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeUser, createUser, mintUserKey, removeUser, usersOf } from '#shared/org/user.ts'

/** Users: who belongs to an organization, and their private vaults. */
export function users(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/users'

  router.post(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await bodyOf(ctx, CreateUserBody)
    const user = await createUser(backend, acting, operationOf(ctx), {
      email: body.email,
      firstName: body.first_name,
      lastName: body.last_name,
      roleIds: body.role_ids,
    })
    ctx.status = 201
    ctx.body = presentUser(user)
  })

  router.get(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const rows = await usersOf(backend, acting)
    ctx.body = { users: rows.map(presentListedUser) }
  })

  router.patch(`${path}/:userId`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await bodyOf(ctx, ChangeUserBody)
    const user = await changeUser(backend, acting, ctx.params.userId ?? '', {
      email: body.email,
      firstName: body.first_name,
      lastName: body.last_name,
      roleIds: body.role_ids,
    })
    ctx.body = presentUser(user)
  })

  router.delete(`${path}/:userId`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.userId ?? ''
    await claimed(ctx, null)
    await removeUser(actedByAdmin(ctx, backend), acting, id, operationOf(ctx))
    ctx.body = { deleted: true, id }
  })

  router.post(`${path}/:userId/memory-key`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.userId ?? ''
    await claimed(ctx, null)
    const { key, rotated, createdAt } = await mintUserKey(actedByAdmin(ctx, backend), acting, id)
    ctx.status = 201
    ctx.body = {
      user_id: id.toLowerCase(),
      key,
      memory_key: key,
      rotated,
      created_at: createdAt.getTime(),
    }
  })
}
