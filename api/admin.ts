import type { Context } from 'koa'
import { limited, refuseLimited } from '#api/limits.ts'
import { bearerOf } from '#api/request.ts'
import type { Backend } from '#shared/backend.ts'
import { adminOfCredential, type Admin } from '#shared/key/admin.ts'
import { hashOfKey } from '#shared/key/key.ts'

/**
 * The admin of a request, by `Authorization: Bearer`, `X-Admin-Key` or `X-Dashboard-Key`. The email is
 * the credential's own: an `X-Admin-Email` that a client sends is not looked at.
 */
export async function adminOf(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'config'>,
): Promise<Admin | undefined> {
  const credential = bearerOf(ctx) ?? (ctx.get('x-admin-key') || ctx.get('x-dashboard-key'))
  if (!credential) return undefined
  const hash = hashOfKey(backend.config.keyPepper, credential)
  refuseLimited(ctx, hash)
  const admin = await adminOfCredential(backend, credential)
  if (admin) await limited(ctx, hash, admin.account)
  return admin
}
