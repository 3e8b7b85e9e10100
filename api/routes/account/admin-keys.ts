import type { Router } from '@koa/router'
import { withActor } from '#api/edge/owner-auth.ts'
import { requireAdmin } from '#api/edge/admin-auth.ts'
import { CreateAdminKeyBody } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { parseBody } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { isOperator } from '#shared/access/operator.ts'
import { upsertAccount } from '#shared/access/accounts.postgres.ts'
import {
  insertAdminKey,
  listAdminKeys,
  revokeAdminKey,
  type AdminKey,
} from '#shared/access/admin-keys.postgres.ts'

const dayMs = 24 * 3600 * 1000

/** Admin credentials: admins issue and revoke those of their own email, the operator those of any. */
export function adminKeys(router: Router, backend: Backend): void {
  const path = '/v1/account/admin-keys'
  const { postgres, config } = backend

  router.post(path, async ctx => {
    const admin = await requireAdmin(ctx, backend)
    const body = await parseBody(ctx, CreateAdminKeyBody)
    const email = body.email?.toLowerCase() ?? admin.email
    if (email !== admin.email && !isOperator(config, admin)) {
      throw new Refusal(
        'forbidden',
        'Only the operator issues credentials for another email',
        'Leave email out to issue one for yourself',
      )
    }
    const key = mintKey('admin')
    const actorPostgres = withActor(backend, { actor: admin.email }).postgres
    const issued = await actorPostgres.transaction(async tx => {
      await upsertAccount(tx, email, { paymentMethod: null, balance: null })
      return insertAdminKey(tx.query, {
        id: operationId(ctx),
        hash: hashKey(config.keyPepper, key),
        email,
        masked: maskKey(key),
        issuedBy: admin.email,
        expiresAt: new Date(Date.now() + body.expires_in_days * dayMs),
      })
    })
    ctx.status = 201
    ctx.body = { key, ...presentAdminKey(issued) }
  })

  router.get(path, async ctx => {
    const admin = await requireAdmin(ctx, backend)
    const email = isOperator(config, admin) ? null : admin.email
    ctx.body = { admin_keys: (await listAdminKeys(postgres.query, email)).map(presentAdminKey) }
  })

  router.delete(`${path}/:adminKeyId`, async ctx => {
    const admin = await requireAdmin(ctx, backend)
    const { adminKeyId = '' } = ctx.params
    await claimIdempotencyKey(ctx, null)
    const email = isOperator(config, admin) ? null : admin.email
    const { query } = withActor(backend, { actor: admin.email }).postgres
    if (!isUuid(adminKeyId) || !(await revokeAdminKey(query, email, adminKeyId))) {
      throw new Refusal('missing', 'There is no such admin credential')
    }
    ctx.body = { deleted: true, id: adminKeyId }
  })
}

const presentAdminKey = (key: AdminKey) => ({
  id: key.id,
  masked_key: key.masked,
  email: key.email,
  issued_by: key.issuedBy,
  created_at: key.createdAt.toISOString(),
  expires_at: key.expiresAt.toISOString(),
  revoked_at: key.revokedAt?.toISOString() ?? null,
})
