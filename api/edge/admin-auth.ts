import type { Context, Middleware } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { hasSeveralAuthorizations, parseBearer } from '#api/edge/memory-key-auth.ts'
import { findAdminByCredential, type Admin } from '#shared/access/admin.ts'
import { hashKey } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'

type AdminBackend = Pick<ApiBackend, 'postgres' | 'config' | 'rateLimiter'>

/**
 * The admin of a request, by `Authorization: Bearer`, `X-Admin-Key` or `X-Dashboard-Key`. The email is
 * that of the credential: an `X-Admin-Email` header is ignored.
 *
 * @param authorization in place of the header
 * @throws Refusal `limited` when the credential makes too many requests.
 */
export async function authenticateAdmin(
  ctx: Context,
  backend: AdminBackend,
  authorization = ctx.get('authorization'),
): Promise<Admin | undefined> {
  const { config, rateLimiter } = backend
  const credential =
    parseBearer(authorization) ??
    (ctx.get('x-admin-key').trim() || ctx.get('x-dashboard-key').trim())
  if (!credential) return undefined
  const hash = hashKey(config.keyPepper, credential)
  rateLimiter.rejectIfLimited(ctx, hash)
  const admin = await findAdminByCredential(backend, credential)
  if (admin) await rateLimiter.consumeKeyQuota(ctx, hash, admin.account)
  return admin
}

/** @throws Refusal `unauthenticated` without a valid admin credential, or when it is `ambiguous`. */
export async function requireAdmin(
  ctx: Context,
  backend: AdminBackend,
  { ambiguous = false } = {},
): Promise<Admin> {
  const admin = ambiguous ? undefined : await authenticateAdmin(ctx, backend)
  if (admin) return admin
  throw new Refusal(
    'unauthenticated',
    'This needs an admin credential',
    'Send it as "Authorization: Bearer …", "X-Admin-Key: …" or "X-Dashboard-Key: …"; Memory Keys are none',
  )
}

/** Whether the path lies below `/v1/orgs`, where nothing is answered before the admin is authenticated. */
export const isOrgPath = ({ path }: Context): boolean => /^\/v1\/orgs(?:\/|$)/i.test(path)

/**
 * Stands behind the routes: a request below `/v1/orgs` that none has taken is refused unless it is an
 * admin's, so that others cannot find out which paths exist.
 */
export function hideOrgPaths(backend: AdminBackend): Middleware {
  return async (ctx, next) => {
    if (isOrgPath(ctx))
      await requireAdmin(ctx, backend, { ambiguous: hasSeveralAuthorizations(ctx) })
    await next()
  }
}
