import type { Context, Middleware } from 'koa'
import { consumeKeyQuota, rejectIfLimited } from '#api/edge/rate-limit.ts'
import { bearerToken } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { findAdminByCredential, type Admin } from '#shared/access/admin.ts'
import { hashKey } from '#shared/access/key.ts'
import { isOperator } from '#shared/access/operator.ts'
import { requireOrganization } from '#shared/org/policy-change.ts'
import { bindActor } from '#shared/audit/actor.postgres.ts'
import type { OrgRow } from '#shared/org/orgs.postgres.ts'

/**
 * The admin of a request, by `Authorization: Bearer`, `X-Admin-Key` or `X-Dashboard-Key`. The email is
 * the credential's own: an `X-Admin-Email` that a client sends is not looked at.
 *
 * @throws Refusal `limited` when the credential makes too many requests.
 */
export async function authenticateAdmin(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'config'>,
): Promise<Admin | undefined> {
  const credential =
    bearerToken(ctx) ?? (ctx.get('x-admin-key').trim() || ctx.get('x-dashboard-key').trim())
  if (!credential) return undefined
  const hash = hashKey(backend.config.keyPepper, credential)
  rejectIfLimited(ctx, hash)
  const admin = await findAdminByCredential(backend, credential)
  if (!admin) return undefined
  await consumeKeyQuota(ctx, hash, admin.account)
  // What an Idempotency-Key belongs to.
  ctx.state.caller = { keyHash: hash }
  return admin
}

/**
 * Stands before everything below `/v1/orgs`: whoever is no admin learns nothing there, not even which
 * paths exist. Memory Keys are not looked up at all.
 */
export function adminsOnly(backend: Pick<Backend, 'postgres' | 'config'>): Middleware {
  return async (ctx, next) => {
    if (!/^\/v1\/orgs(?:\/|$)/i.test(ctx.path)) return next()
    // Node keeps the first of several and drops the rest unseen.
    const isAmbiguous = (ctx.req.headersDistinct.authorization?.length ?? 0) > 1
    const admin = isAmbiguous ? undefined : await authenticateAdmin(ctx, backend)
    if (!admin) throw adminRequired()
    ctx.state.admin = admin
    await next()
  }
}

/** @throws Refusal `unauthenticated` when the request is no admin's. */
export async function requireAdmin(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'config'>,
): Promise<Admin> {
  const admin = await authenticateAdmin(ctx, backend)
  if (admin) return admin
  throw adminRequired()
}

/**
 * The operator, for answers that tell of every tenant.
 *
 * @throws Refusal `unauthenticated` when the request is no admin's, `forbidden` when it is another's.
 */
export async function requireOperatorAdmin(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'config'>,
): Promise<Admin> {
  const admin = await requireAdmin(ctx, backend)
  if (isOperator(backend.config, admin)) return admin
  throw new Refusal(
    'forbidden',
    'This is for the operator of the service',
    'Use an admin credential of ADMIN_EMAIL, or without it of the first account',
  )
}

const adminRequired = (): Refusal =>
  new Refusal(
    'unauthenticated',
    'This needs an admin credential',
    'Send it as "Authorization: Bearer …", "X-Admin-Key: …" or "X-Dashboard-Key: …"; Memory Keys are none',
  )

/** The admin who asks, on a path that only admins get to. */
export function currentAdmin(ctx: Context): Admin {
  const { admin } = ctx.state as { admin?: Admin }
  if (admin) return admin
  throw new Error(`${ctx.path} is not behind adminsOnly`)
}

/** The backend for what they change: the account's events name them. */
export const withAdminActor = <Part extends Pick<Backend, 'postgres'>>(
  ctx: Context,
  backend: Part,
): Part => ({ ...backend, postgres: bindActor(backend.postgres, currentAdmin(ctx).email) })

/**
 * The admin who asks and the organization of the path, with its shared vault as it is now.
 *
 * @throws Refusal `missing` when it is not theirs, in the words that an unknown one gets.
 */
export async function requireAdminOrg(
  ctx: Context & { params?: Record<string, string> },
  { postgres }: Pick<Backend, 'postgres'>,
): Promise<{ admin: Admin; org: OrgRow }> {
  const admin = currentAdmin(ctx)
  return { admin, org: await requireOrganization(postgres.query, admin, ctx.params?.orgId ?? '') }
}
