import type { Context, Middleware } from 'koa'
import type { RouterContext } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import {
  parseBearer,
  requireOneAuthorization,
  authenticateBodyUser,
  authenticateCaller,
  namesUser,
} from '#api/edge/memory-key-auth.ts'
import {
  findAdminByCredential,
  isOurCredential,
  isOperator,
  type Admin,
} from '#shared/access/admin.ts'
import { findReviewerByCredential, type Reviewer } from '#shared/org/admin/reviewers.ts'
import { findScimScope } from '#shared/org/admin/scim-tokens.ts'
import { hashKey } from '#shared/access/key.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import {
  actorOf,
  mayNameUsers,
  requireNamedUser,
  requireOwner,
  type Caller,
} from '#shared/access/caller.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { parseSharedMemoryId } from '#shared/org/memories/shared-change.ts'
import { requireOrganization, type OrgAdmin } from '#shared/org/base/policy-change.ts'

type AdminBackend = Pick<ApiBackend, 'postgres' | 'config' | 'rateLimiter'>

/**
 * The admin of a request, by `Authorization: Bearer`, `X-Admin-Key` or `X-Dashboard-Key`. A bearer token that is none
 * of ours, such as a dashboard's, does not count together with one of these headers. The email is
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
async function requireAdmin(ctx: Context, backend: AdminBackend): Promise<Admin> {
  return (await authenticateAdmin(ctx, backend)) ?? refuseUnknown()
}

/** As `requireAdmin`, also for reviewers of an organization. */
async function requireReviewer(ctx: Context, backend: AdminBackend): Promise<Reviewer> {
  const authorization = ctx.get('authorization')
  const reviewer = await authenticate(ctx, backend, authorization, findReviewerByCredential)
  return reviewer ?? refuseUnknown()
}

/**
 * The organization that a directory keeps, by its token in `Authorization: Bearer`.
 *
 * @throws Refusal `unauthenticated`; `limited`; `invalid` for a request that names a user.
 */
export async function authenticateScim(ctx: Context, backend: AdminBackend): Promise<OrgAdmin> {
  requireOneAuthorization(ctx)
  const { config, rateLimiter } = backend
  const token = parseBearer(ctx.get('authorization'))
  if (token?.startsWith('mk_scim_')) {
    rateLimiter.rejectIfLimited(ctx, hashKey(config.keyPepper, token))
    rateLimiter.rejectGuesses(ctx)
    const scope = await findScimScope(backend, token)
    if (scope) {
      await rateLimiter.consumeKeyQuota(ctx, scope.admin.keyHash, scope.admin.account)
      if (namesUser(ctx)) throw refusal('invalid', 'userNamedForAccount')
      return scope
    }
    rateLimiter.noteGuess(ctx)
  }
  throw refusal('unauthenticated', 'directoryTokenNeeded')
}

function refuseUnknown(): never {
  throw refusal('unauthenticated', 'adminNeeded')
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

/** Who makes a request. */
export type Identity = {
  account: string
  /** As the account's events name it: an admin's email, or a Memory Key, masked. */
  actor: string
  /** Hash of the credential: an Idempotency-Key belongs to it. */
  keyHash: Buffer
}

/** @throws Refusal `unauthenticated`, `forbidden` or `limited`, and what its checks throw. */
export type Authenticate<Id extends Identity> = (
  ctx: RouterContext,
  backend: ApiBackend,
) => Promise<Id>

type Check = (caller: Caller) => void

type CallerIdentity = Identity & { caller: Caller }

/**
 * A Memory Key, for what concerns one vault: a key for users has to name its user.
 *
 * @param checks run in this order once the key is known to be valid
 */
export const memoryKey = (...checks: Check[]): Authenticate<CallerIdentity> =>
  anyMemoryKey(...checks, requireNamedUser)

/** As `memoryKey`, for a call whose body may name the user: the checks wait for it. */
export const memoryKeyOfBody =
  (...checks: Check[]): Authenticate<CallerIdentity & UserOfBody> =>
  async (ctx, backend) => {
    const first = await authenticateCaller(ctx, backend)
    return {
      ...toCallerIdentity(first),
      async openUser(user) {
        const caller =
          user === undefined ? first : await authenticateBodyUser(ctx, backend, first, user)
        for (const check of [...checks, requireNamedUser]) check(caller)
        return toCallerIdentity(caller)
      },
    }
  }

type UserOfBody = {
  /** Who makes the request, with the user that its body names, if any. */
  openUser(user: string | undefined): Promise<CallerIdentity>
}

/** An identity, once the body is read. @throws Refusal as `authenticateBodyUser`, and for a user by another name. */
export async function identifyByBody<Id extends Identity>(
  identity: Id & Partial<CallerIdentity & UserOfBody>,
  body: unknown,
  { ignored }: InputNotes,
): Promise<Id> {
  const named = (body as { memory_user?: string } | undefined)?.memory_user
  const found = identity.openUser ? { ...identity, ...(await identity.openUser(named)) } : identity
  const other = namesOfUser.find(name => ignored.has(name))
  if (other === undefined || !found.caller || !mayNameUsers(found.caller)) return found
  throw refusal('invalid', 'otherUserHeader', { other })
}

/** As other services call it. */
const namesOfUser = ['user', 'user_id', 'external_id', 'memory_user']

/** As `memoryKey`, for what concerns no vault. */
export const anyMemoryKey =
  (...checks: Check[]): Authenticate<CallerIdentity> =>
  async (ctx, backend) => {
    const caller = await authenticateCaller(ctx, backend)
    for (const check of checks) check(caller)
    return toCallerIdentity(caller)
  }

const toCallerIdentity = (caller: Caller): CallerIdentity => ({
  account: caller.account,
  actor: actorOf(caller),
  keyHash: caller.keyHash,
  caller,
})

type AdminIdentity = Identity & { admin: Admin }

/** @throws Refusal `invalid` for a request that names a user: what it asks is not about one. */
function toAdminIdentity(ctx: RouterContext, admin: Admin): AdminIdentity {
  if (namesUser(ctx)) throw refusal('invalid', 'userNamedForAccount')
  return toIdentity(admin)
}

const toIdentity = (admin: Admin): AdminIdentity => ({
  account: admin.account,
  actor: admin.email,
  keyHash: admin.keyHash,
  admin,
})

/**
 * An admin, or an owner key: one that was made with the account. Keys minted over HTTP are for one user
 * each and are refused.
 *
 * @param checks of an owner key
 */
export const owner =
  (...checks: Check[]): Authenticate<Identity> =>
  async (ctx, backend) => {
    const signedInAdmin = await authenticateAdmin(ctx, backend)
    if (signedInAdmin) return toAdminIdentity(ctx, signedInAdmin)
    return memoryKey(requireOwner, ...checks)(ctx, backend)
  }

export const admin: Authenticate<AdminIdentity> = async (ctx, backend) =>
  toAdminIdentity(ctx, await requireAdmin(ctx, backend))

/** An admin, or a reviewer of one organization. */
export const reviewer: Authenticate<Identity & { reviewer: Reviewer }> = async (ctx, backend) => {
  const found = await requireReviewer(ctx, backend)
  if (namesUser(ctx)) throw refusal('invalid', 'userNamedForAccount')
  const { account, email: actor, keyHash } = found
  return { account, actor, keyHash, reviewer: found }
}

/** The operator, for endpoints that span all accounts. @throws Refusal `forbidden` for another admin. */
export const operator: Authenticate<AdminIdentity> = async (ctx, backend) => {
  const identity = await admin(ctx, backend)
  if (isOperator(backend.config, identity.admin)) return identity
  throw refusal('forbidden', 'operatorAlone')
}

/** The admin, and the id in the path; whether the organization is theirs is checked when it is used. */
export const orgAdmin = withLookup(admin, ({ admin }, ctx) => ({
  orgAdmin: { admin, org: ctx.params.orgId ?? '' },
}))

/**
 * The admin and the organization of the path, with its shared vault as it is now.
 *
 * @throws Refusal `missing` for one of another admin, in the words for an unknown one.
 */
export const loadedOrg = withLookup(
  admin,
  async ({ admin }, ctx, { postgres }): Promise<{ org: OrgRow }> => ({
    org: await requireOrganization(postgres.query, admin, ctx.params.orgId ?? ''),
  }),
)

/** As `loadedOrg`, and the id of a shared memory in the path. @throws Refusal `missing` for a malformed id. */
export const sharedMemory = withLookup(loadedOrg, (_, ctx) => ({
  id: parseSharedMemoryId(ctx.params.memId),
}))

/**
 * As `loadedOrg`, for an admin or a reviewer of the organization.
 *
 * @throws Refusal `missing` for every other one.
 */
export const reviewedOrg = withLookup(
  reviewer,
  async ({ reviewer }, ctx, { postgres }): Promise<{ org: OrgRow }> => ({
    org: await requireOrganization(postgres.query, reviewer, ctx.params.orgId ?? ''),
  }),
)

/** As `sharedMemory`, for an admin or a reviewer of the organization. */
export const reviewedMemory = withLookup(reviewedOrg, (_, ctx) => ({
  id: parseSharedMemoryId(ctx.params.memId),
}))

/** Adds what the path names; runs before query and body are read. */
export function withLookup<Id extends Identity, Found extends object>(
  authenticate: Authenticate<Id>,
  lookUp: (identity: Id, ctx: RouterContext, backend: ApiBackend) => Found | Promise<Found>,
): Authenticate<Id & Found> {
  return async (ctx, backend) => {
    const identity = await authenticate(ctx, backend)
    return { ...identity, ...(await lookUp(identity, ctx, backend)) }
  }
}
