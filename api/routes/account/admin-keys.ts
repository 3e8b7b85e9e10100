import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { isOperator } from '#shared/access/operator.ts'
import { upsertAccount } from '#shared/access/accounts.postgres.ts'
import { issueAdminKey, revokeAdminKey } from '#shared/access/admin-keys.ts'
import { listAdminKeys, type AdminKey } from '#shared/access/admin-keys.postgres.ts'

const dayMs = 24 * 3600 * 1000

/** Admin credentials: admins issue and revoke those of their own email, the operator those of any. */
export function adminKeys(router: Router, backend: ApiBackend): void {
  const { postgres, config } = backend

  endpoint(router, backend, {
    route: 'POST /v1/account/admin-keys',
    auth: admin,
    async handle({ actor, admin, body, claim }, ctx) {
      const email = body.email?.toLowerCase() ?? admin.email
      if (email !== admin.email && !isOperator(config, admin)) {
        throw new Refusal(
          'forbidden',
          'Only the operator issues credentials for another email',
          'Leave email out to issue one for yourself',
        )
      }
      const key = mintKey('admin')
      const issued = await postgres.transaction(async tx => {
        await upsertAccount(tx, email, { paymentMethod: null, balance: null })
        const newKey = {
          id: claim.operation,
          hash: hashKey(config.keyPepper, key),
          email,
          masked: maskKey(key),
          issuedBy: admin.email,
          expiresAt: new Date(Date.now() + body.expires_in_days * dayMs),
        }
        return issueAdminKey(tx, newKey, actor)
      })
      ctx.status = 201
      ctx.body = { key, ...presentAdminKey(issued) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/account/admin-keys',
    auth: admin,
    async handle({ admin }, ctx) {
      const email = isOperator(config, admin) ? null : admin.email
      ctx.body = { admin_keys: (await listAdminKeys(postgres.query, email)).map(presentAdminKey) }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/account/admin-keys/:adminKeyId',
    auth: admin,
    async handle({ actor, admin, params }, ctx) {
      const { adminKeyId } = params
      const email = isOperator(config, admin) ? null : admin.email
      const revoke = (id: string) =>
        postgres.transaction(tx => revokeAdminKey(tx, { email, id }, actor))
      if (!isUuid(adminKeyId) || !(await revoke(adminKeyId))) {
        throw new Refusal('missing', 'There is no such admin credential')
      }
      ctx.body = { deleted: true, id: adminKeyId }
    },
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
