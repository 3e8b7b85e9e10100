import type { Router } from '@koa/router'
import { actedByAdmin, actingAdmin } from '#api/edge/admin.ts'
import { CreateMemberKeyBody, ListMemberKeysQuery } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentKeyState, presentListedKey, presentNewKey } from '#api/present/org.ts'
import { bodyOf, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { endMemberKey, mintMemberKey, readMemberKey, searchMemberKeys } from '#shared/org/member.ts'

/** Keys of members: each opens their private vault and what they may see of the shared one. */
export function memberKeys(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/keys'

  router.post(path, async ctx => {
    const admin = actingAdmin(ctx)
    const body = await bodyOf(ctx, CreateMemberKeyBody)
    const key = await mintMemberKey(actedByAdmin(ctx, backend), admin, {
      org: ctx.params.orgId ?? '',
      teamMemberId: body.team_member_id,
      operation: operationOf(ctx),
    })
    ctx.status = 201
    ctx.body = presentNewKey(key)
  })

  router.get(path, async ctx => {
    const admin = actingAdmin(ctx)
    const { q } = queryOf(ctx, ListMemberKeysQuery)
    await backend.lastUsed.flush()
    const rows = await searchMemberKeys(backend, admin, ctx.params.orgId ?? '', q)
    ctx.body = { keys: rows.map(presentListedKey) }
  })

  router.get(`${path}/:keyId`, async ctx => {
    const { orgId = '', keyId = '' } = ctx.params
    await backend.lastUsed.flush()
    const key = await readMemberKey(backend, actingAdmin(ctx), orgId, keyId)
    ctx.body = { ...presentNewKey(key), ...presentKeyState(key) }
  })

  router.delete(`${path}/:keyId`, async ctx => {
    const admin = actingAdmin(ctx)
    const { orgId = '', keyId = '' } = ctx.params
    await claimed(ctx, null)
    const id = await endMemberKey(actedByAdmin(ctx, backend), admin, orgId, keyId)
    ctx.body = { deleted: true, id }
  })
}
