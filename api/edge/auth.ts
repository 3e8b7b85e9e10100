import type { RouterContext } from '@koa/router'
import { authenticateAdmin, requireAdmin, requireReviewer } from '#api/edge/admin-auth.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { authenticateCaller } from '#api/edge/memory-key-auth.ts'
import { namesUser } from '#api/edge/memory-user.ts'
import type { Admin } from '#shared/access/admin.ts'
import { actorOf, namedUserRefusal, requireOwner, type Caller } from '#shared/access/caller.ts'
import { isOperator } from '#shared/access/operator.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { parseSharedMemoryId } from '#shared/org/memories/shared-change.ts'
import type { Reviewer } from '#shared/org/admin/reviewers.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'

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

/** @param checks run in this order once the key is known to be valid */
export const memoryKey =
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
  if (namesUser(ctx)) throw namedUserRefusal()
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

type ReviewerIdentity = Identity & { reviewer: Reviewer }

/** An admin, or a reviewer of one organization. */
export const reviewer: Authenticate<ReviewerIdentity> = async (ctx, backend) => {
  const found = await requireReviewer(ctx, backend)
  if (namesUser(ctx)) throw namedUserRefusal()
  const { account, email: actor, keyHash } = found
  return { account, actor, keyHash, reviewer: found }
}

/** The operator, for endpoints that span all accounts. @throws Refusal `forbidden` for another admin. */
export const operator: Authenticate<AdminIdentity> = async (ctx, backend) => {
  const identity = await admin(ctx, backend)
  if (isOperator(backend.config, identity.admin)) return identity
  throw new Refusal(
    'forbidden',
    'This is for the operator of the service',
    'Use an admin credential of ADMIN_EMAIL, or without it of the first account',
  )
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
