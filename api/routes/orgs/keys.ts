import type { Router } from '@koa/router'
import { withAdminActor, currentAdmin } from '#api/edge/admin-auth.ts'
import { CreateMemberKeyBody, ListMemberKeysQuery } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentKeyState, presentListedMemberKey, presentNewMemberKey } from '#api/present/org.ts'
import { parseBody, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import {
  revokeOrgMemberKey,
  mintMemberKey,
  readMemberKey,
  searchMemberKeys,
} from '#shared/org/member-keys.ts'

/** Keys of members: each opens their private vault and what they may see of the shared one. */
export function memberKeys(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/keys'

  router.post(path, async ctx => {
    const admin = currentAdmin(ctx)
    const body = await parseBody(ctx, CreateMemberKeyBody)
    const key = await mintMemberKey(withAdminActor(ctx, backend), admin, {
      org: ctx.params.orgId ?? '',
      teamMemberId: body.team_member_id,
      operation: operationId(ctx),
    })
    ctx.status = 201
    ctx.body = presentNewMemberKey(key)
  })

  router.get(path, async ctx => {
    const admin = currentAdmin(ctx)
    const { q } = parseQuery(ctx, ListMemberKeysQuery)
    await backend.lastUsed.flush()
    const rows = await searchMemberKeys(backend, admin, ctx.params.orgId ?? '', q)
    ctx.body = { keys: rows.map(presentListedMemberKey) }
  })

  router.get(`${path}/:keyId`, async ctx => {
    const { orgId = '', keyId = '' } = ctx.params
    await backend.lastUsed.flush()
    const key = await readMemberKey(backend, currentAdmin(ctx), orgId, keyId)
    ctx.body = { ...presentNewMemberKey(key), ...presentKeyState(key) }
  })

  router.delete(`${path}/:keyId`, async ctx => {
    const admin = currentAdmin(ctx)
    const { orgId = '', keyId = '' } = ctx.params
    await claimIdempotencyKey(ctx, null)
    const id = await revokeOrgMemberKey(withAdminActor(ctx, backend), admin, orgId, keyId)
    ctx.body = { deleted: true, id }
  })
}
