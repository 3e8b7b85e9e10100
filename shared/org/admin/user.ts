import { findScopeOf } from '#shared/access/key-row.postgres.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import { deleteMemberKeys } from '#shared/access/member-keys.postgres.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { requireAllowedTagsLimit } from '#shared/org/admin/role.ts'
import { isEmail, normalizeMemberId } from '#shared/org/base/normalize.ts'
import { missingOrganization } from '#shared/org/base/orgs.postgres.ts'
import { changePolicy, type OrgAdmin } from '#shared/org/base/policy-change.ts'
import { policyResource } from '#shared/org/base/policy-resource.ts'
import { deleteReviewerOf } from '#shared/org/admin/reviewers.ts'
import { roleRows } from '#shared/org/base/roles.postgres.ts'
import {
  findUserByName,
  insertUser,
  replaceRoles,
  updateUser,
  userRows,
  type UserChange,
  type UserRow,
} from '#shared/org/base/users.postgres.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'

const conflictMessage = 'The organization has a user of this email already'

export const users = policyResource({
  name: 'user',
  rows: userRows,
  conflictMessage,
  // The names of a person give no access and are not recorded.
  toRecorded: ({ teamMemberId, email, roles }: UserRow) => ({
    team_member_id: teamMemberId,
    email,
    roles: roles.map(({ name }) => name).toSorted(),
  }),
})

export const { require: requireUser } = users

/**
 * Creates a user with a private vault.
 *
 * @param id the operation of the request
 * @throws Refusal as `policyResource` and `replaceUserRoles`.
 */
export const createUser = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  {
    email: givenEmail,
    firstName,
    lastName,
    roleIds,
  }: UserChange & { email: string; roleIds?: string[] | undefined },
): Promise<UserRow> =>
  users.create(backend, { admin, org }, id, async tx => {
    const email = normalizeMemberId(givenEmail)
    const vault = await insertVault(tx, admin.account)
    await insertUser(tx, {
      id,
      org,
      vault,
      teamMemberId: email,
      email,
      firstName: firstName ?? null,
      lastName: lastName ?? null,
    })
    if (roleIds) await replaceUserRoles(tx, org, id, roleIds)
  })

/**
 * Changes the given fields; `roleIds` replaces all roles and is an event of its own.
 *
 * @throws Refusal as `policyResource` and `replaceUserRoles`.
 */
export const changeUser = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  { roleIds, email, ...names }: UserChange & { roleIds?: string[] | undefined },
): Promise<UserRow> =>
  changePolicy(backend, { admin, org, conflictMessage }, async tx => {
    const before = await requireUser(tx.query, org, id)
    await updateUser(tx, id, { ...names, email: email && normalizeMemberId(email) })
    if (roleIds) await replaceUserRoles(tx, org, id, roleIds)
    const after = await requireUser(tx.query, org, id)
    const renamed = { ...after, roles: before.roles }
    await users.record(tx, { admin, org }, 'user.changed', { before, after: renamed })
    await users.record(tx, { admin, org }, 'role.assigned', { before: renamed, after })
    return after
  })

/**
 * Removes a user with their roles and keys. The private vault is invisible at once; a job erases it.
 *
 * @throws Refusal as `policyResource`.
 */
export async function removeUser(
  backend: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  { admin, org }: OrgAdmin,
  id: string,
  operation: string,
): Promise<void> {
  const { account, email: actor, keyHash } = admin
  const removed = await users.remove(backend, { admin, org }, id, operation, async (tx, user) => {
    await retireVaults(tx, backend, { operation, account, keyHash, vaults: [user.vault] })
    const revoked = await deleteMemberKeys(tx, { org, user: user.id })
    await announceRevokedKeys(tx, backend.queue, revoked, actor)
    await deleteReviewerOf(tx, { admin, org }, user.email)
  })
  if (removed) backend.vaultIndexes.forget(removed.vault)
}

/**
 * Gives a user exactly these roles.
 *
 * @throws Refusal as `policyResource` and `replaceUserRoles`.
 */
export const assignRoles = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  roleIds: string[],
  resolveUser: (tx: Transaction) => Promise<UserRow>,
): Promise<UserRow> =>
  changePolicy(backend, { admin, org }, async tx => {
    const user = await resolveUser(tx)
    await replaceUserRoles(tx, org, user.id, roleIds)
    const after = await requireUser(tx.query, org, user.id)
    await users.record(tx, { admin, org }, 'role.assigned', { before: user, after })
    return after
  })

/**
 * Finds the user of a name or email; creates one with a private vault where there is none.
 *
 * @throws Refusal `invalid` for a name that is only white space.
 */
export async function ensureUser(
  tx: Transaction,
  { admin, org }: OrgAdmin,
  name: string,
): Promise<UserRow> {
  const teamMemberId = normalizeMemberId(name)
  if (teamMemberId === '') throw new Refusal('invalid', 'team_member_id holds no name')
  const known = await findUserByName(tx.query, org, teamMemberId)
  if (known) return known
  const id = mintId()
  await insertUser(tx, {
    id,
    org,
    vault: await insertVault(tx, admin.account),
    teamMemberId,
    email: isEmail(teamMemberId) ? teamMemberId : null,
    firstName: null,
    lastName: null,
  })
  const user = await requireUser(tx.query, org, id)
  await users.record(tx, { admin, org }, 'user.created', { after: user })
  return user
}

const missingRole = (): Refusal =>
  new Refusal('missing', 'No such role', 'GET /v1/orgs/:orgId/roles lists them')

/**
 * @throws Refusal `missing` for an unknown role; `conflict` when a role that a group gives is left out; `invalid` when
 *   the roles allow more than 1,000 tags.
 */
async function replaceUserRoles(
  tx: Transaction,
  org: string,
  user: string,
  roleIds: readonly string[],
): Promise<void> {
  const roles = [...new Set(roleIds.map(id => id.toLowerCase()))]
  if (!(await replaceRoles(tx, { org, user, roles }))) {
    throw missingRole()
  }
  const kept = (await requireUser(tx.query, org, user)).roles
  const ofGroups = kept.filter(({ role_id: id }) => !roles.includes(id)).map(({ name }) => name)
  if (ofGroups.length > 0) {
    throw new Refusal(
      'conflict',
      `A group of the directory gives the member ${ofGroups.join(', ')}`,
      'Name these roles too, or take the member out of the group; PUT /v1/orgs/:orgId/directory says what groups give',
    )
  }
  await requireAllowedTagsLimit(tx, { user })
}

/** Who is looked as: a user of the organization, or a member who has exactly these roles. */
export type ViewerChoice = { user: string } | { roles: readonly string[] }

/**
 * Finds what a viewer may see now.
 *
 * @throws Refusal `missing` for an unknown user or role.
 */
export async function findViewer(
  query: Query,
  org: string,
  choice: ViewerChoice,
): Promise<{ teamMemberId: string | null; roles: UserRow['roles']; scope: MemberScope }> {
  const { teamMemberId, roles } =
    'user' in choice
      ? await requireUser(query, org, choice.user)
      : { teamMemberId: null, roles: await requireRoles(query, org, choice.roles) }
  const scope = await findScopeOf(query, org, choice)
  if (!scope) throw missingOrganization()
  return { teamMemberId, roles, scope }
}

async function requireRoles(
  query: Query,
  org: string,
  given: readonly string[],
): Promise<UserRow['roles']> {
  const ids = new Set(given.map(id => id.toLowerCase()))
  const rows = (await roleRows.list(query, org)).filter(({ id }) => ids.has(id))
  if (rows.length < ids.size) throw missingRole()
  return rows.map(({ id, name }) => ({ role_id: id, name }))
}
