import type { Router } from '@koa/router'
import { withAdminActor, currentAdmin } from '#api/edge/admin-auth.ts'
import { ChangeUserBody, CreateUserBody } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentListedUser, presentUser } from '#api/present/org.ts'
import { parseBody } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeUser, createUser, mintUserKey, removeUser, listOrgUsers } from '#shared/org/user.ts'

/** Users: who belongs to an organization, and their private vaults. */
export function users(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/users'

  router.post(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await parseBody(ctx, CreateUserBody)
    const user = await createUser(backend, orgAdmin, operationId(ctx), {
      email: body.email,
      firstName: body.first_name,
      lastName: body.last_name,
      roleIds: body.role_ids,
    })
    ctx.status = 201
    ctx.body = presentUser(user)
  })

  router.get(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const rows = await listOrgUsers(backend, orgAdmin)
    ctx.body = { users: rows.map(presentListedUser) }
  })

  router.patch(`${path}/:userId`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await parseBody(ctx, ChangeUserBody)
    const user = await changeUser(backend, orgAdmin, ctx.params.userId ?? '', {
      email: body.email,
      firstName: body.first_name,
      lastName: body.last_name,
      roleIds: body.role_ids,
    })
    ctx.body = presentUser(user)
  })

  router.delete(`${path}/:userId`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.userId ?? ''
    await claimIdempotencyKey(ctx, null)
    await removeUser(withAdminActor(ctx, backend), orgAdmin, id, operationId(ctx))
    ctx.body = { deleted: true, id }
  })

  router.post(`${path}/:userId/memory-key`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.userId ?? ''
    await claimIdempotencyKey(ctx, null)
    const { key, rotated, createdAt } = await mintUserKey(
      withAdminActor(ctx, backend),
      orgAdmin,
      id,
    )
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
