import type { Context, Middleware } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { parseBearer, requireOneAuthorization } from '#api/edge/memory-key-auth.ts'
import { findAdminByCredential, isOurCredential, type Admin } from '#shared/access/admin.ts'
import { findReviewerByCredential, type Reviewer } from '#shared/org/admin/reviewers.ts'
import { hashKey } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'

type AdminBackend = Pick<ApiBackend, 'postgres' | 'config' | 'rateLimiter'>

/**
 * The admin of a request, by `Authorization: Bearer`, `X-Admin-Key` or `X-Dashboard-Key`. A bearer token that is none
 * of ours, such as a dashboard's, does not count beside one of these headers. The email is
 * that of the credential: an `X-Admin-Email` header is ignored.
 *
 * @param authorization in place of the header
 * @throws Refusal `unauthenticated` when `Authorization` is given more than once; `limited` when the
 *   credential makes too many requests, or its address has sent too many unknown ones: then no credential
 *   from there is looked up, the right one neither. A request that also has a Memory Key is left to that.
 */
export const authenticateAdmin = (
  ctx: Context,
  backend: AdminBackend,
  authorization = ctx.get('authorization'),
): Promise<Admin | undefined> => authenticate(ctx, backend, authorization, findAdminByCredential)

type FindByCredential<Found> = (
  backend: AdminBackend,
  credential: string,
) => Promise<Found | undefined>

async function authenticate<Found extends Admin>(
  ctx: Context,
  backend: AdminBackend,
  authorization: string,
  find: FindByCredential<Found>,
): Promise<Found | undefined> {
  requireOneAuthorization(ctx)
  const { config, rateLimiter } = backend
  const bearer = parseBearer(authorization)
  const header = ctx.get('x-admin-key').trim() || ctx.get('x-dashboard-key').trim()
  const isOurs = bearer !== undefined && (header === '' || isOurCredential(config, bearer))
  const credential = isOurs ? bearer : header
  if (!credential || isMemoryKey(credential)) return undefined
  const hash = hashKey(config.keyPepper, credential)
  rateLimiter.rejectIfLimited(ctx, hash)
  if (hasMemoryKey(ctx)) {
    if (rateLimiter.hasTooManyGuesses(ctx)) return undefined
  } else rateLimiter.rejectGuesses(ctx)
  const admin = await find(backend, credential)
  if (admin) await rateLimiter.consumeKeyQuota(ctx, hash, admin.account)
  else rateLimiter.noteGuess(ctx)
  return admin
}

/** No admin credential has the form of a Memory Key, `mk_` and 32 letters and digits. */
const isMemoryKey = (credential: string): boolean =>
  /^mk_(?:org_)?[A-Za-z0-9]{32}(?::[a-z]+)?$/.test(credential)

const hasMemoryKey = (ctx: Context): boolean =>
  [parseBearer(ctx.get('authorization')) ?? '', ctx.get('x-memory-key'), ctx.get('x-api-key')].some(
    value => isMemoryKey(value.trim()),
  )

/** @throws Refusal `unauthenticated` without a valid admin credential. */
export async function requireAdmin(ctx: Context, backend: AdminBackend): Promise<Admin> {
  return (await authenticateAdmin(ctx, backend)) ?? refuseUnknown()
}

/** As `requireAdmin`, also for reviewers of an organization. */
export async function requireReviewer(ctx: Context, backend: AdminBackend): Promise<Reviewer> {
  const authorization = ctx.get('authorization')
  const reviewer = await authenticate(ctx, backend, authorization, findReviewerByCredential)
  return reviewer ?? refuseUnknown()
}

function refuseUnknown(): never {
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
    if (isOrgPath(ctx)) await requireAdmin(ctx, backend)
    await next()
  }
}
