import { retireVaults } from '#shared/vault/delete/retire-vaults.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { isEmail, normalizeMemberId } from '#shared/org/base/normalize.ts'
import { changePolicy } from '#shared/org/base/policy-change.ts'
import {
  createPartRecorder,
  listParts,
  requirePart,
  type OrgAdmin,
} from '#shared/org/base/policy-part.ts'
import { requireAllowedTagsLimit } from '#shared/org/admin/role.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { findOperationStatus } from '#shared/vault/base/erasures.postgres.ts'
import { deleteMemberKeys } from '#shared/access/member-keys.postgres.ts'
import { recordRevokedKeys, toKeyRevokedEvents } from '#shared/access/revoked-key.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'
import {
  deleteUser,
  findUser,
  findUserByName,
  insertUser,
  listUsers,
  replaceRoles,
  updateUser,
  type UserChange,
  type UserRow,
} from '#shared/org/base/users.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'

const takenEmail = 'The organization has a user of this email already'

/**
 * Users with their roles, oldest first.
 *
 * @throws Refusal `missing`.
 */
export const listOrgUsers = (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
): Promise<UserRow[]> => listParts(backend, scope, listUsers)

type NewUser = UserChange & { email: string; roleIds?: string[] | undefined }

/**
 * Creates a user with a private vault. Repeated under the same operation it returns the user.
 *
 * @param operation becomes the user's id
 * @throws Refusal `missing`, also for a role; `invalid` for roles that allow more than 1,000 tags;
 *   `conflict` when the organization has one of that email.
 */
export const createUser = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  operation: string,
  { email, firstName, lastName, roleIds }: NewUser,
): Promise<UserRow> =>
  changePolicy(backend, { admin, org, conflictMessage: takenEmail }, async tx => {
    const existing = await findUser(tx.query, org, operation)
    if (existing) return existing
    const vault = await insertVault(tx, admin.account)
    await insertUser(tx, {
      id: operation,
      org,
      vault,
      teamMemberId: normalizeMemberId(email),
      email: normalizeMemberId(email),
      firstName: firstName ?? null,
      lastName: lastName ?? null,
    })
    if (roleIds) await replaceUserRoles(tx, org, operation, roleIds)
    const user = await requireUser(tx.query, org, operation)
    await recordUserEvent(tx, { admin, org }, 'user.created', { after: user })
    return user
  })

/**
 * Changes the given fields; `roleIds` replaces all roles.
 *
 * @throws Refusal `missing`, also for a role; `invalid` for roles that allow more than 1,000 tags;
 *   `conflict` when another user has that email.
 */
export const changeUser = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  { roleIds, email, ...names }: UserChange & { roleIds?: string[] | undefined },
): Promise<UserRow> =>
  changePolicy(backend, { admin, org, conflictMessage: takenEmail }, async tx => {
    const before = await requireUser(tx.query, org, id)
    await updateUser(tx, id, { ...names, email: email && normalizeMemberId(email) })
    if (roleIds) await replaceUserRoles(tx, org, id, roleIds)
    const after = await requireUser(tx.query, org, id)
    const renamed = { ...after, roles: before.roles }
    await recordUserEvent(tx, { admin, org }, 'user.changed', { before, after: renamed })
    await recordUserEvent(tx, { admin, org }, 'role.assigned', { before: renamed, after })
    return after
  })

/**
 * Removes a user with their roles and every key. The private vault is invisible at once and erased by a
 * job. Repeated under the same operation it changes nothing.
 *
 * @throws Refusal `missing`.
 */
export async function removeUser(
  backend: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  { admin, org }: OrgAdmin,
  id: string,
  operation: string,
): Promise<void> {
  const { account, email: actor, keyHash } = admin
  const vault = await changePolicy(backend, { admin, org }, async tx => {
    if (await findOperationStatus(tx.query, operation)) return null
    const user = await requireUser(tx.query, org, id)
    await retireVaults(tx, backend, { operation, account, keyHash, vaults: [user.vault] })
    const revoked = await deleteMemberKeys(tx, { org, user: user.id })
    await deleteUser(tx, id)
    await recordUserEvent(tx, { admin, org }, 'user.deleted', { before: user })
    await recordRevokedKeys(tx, revoked, actor)
    await emitWebhookEvents(tx, backend.queue, toKeyRevokedEvents(revoked))
    return user.vault
  })
  if (vault) backend.vaultIndexes.forget(vault)
}

/**
 * Gives a user exactly these roles.
 *
 * @throws Refusal `missing`, also for a role; `invalid` for roles that allow more than 1,000 tags.
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
    await recordUserEvent(tx, { admin, org }, 'role.assigned', { before: user, after })
    return after
  })

/**
 * The user of that name, or email; created with a private vault where there is none.
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
  await recordUserEvent(tx, { admin, org }, 'user.created', { after: user })
  return user
}

/**
 * A user of an organization.
 *
 * @throws Refusal `missing`.
 */
export const requireUser = async (query: Query, org: string, id: string): Promise<UserRow> =>
  requirePart(await findUser(query, org, id), 'user')

/** The names of a person are not recorded: they give no access. */
const recordUserEvent = createPartRecorder<
  UserRow,
  'user.created' | 'user.changed' | 'user.deleted' | 'role.assigned'
>(({ teamMemberId, email, roles }) => ({
  team_member_id: teamMemberId,
  email,
  roles: roles.map(({ name }) => name).toSorted(),
}))

async function replaceUserRoles(
  tx: Transaction,
  org: string,
  user: string,
  roleIds: readonly string[],
): Promise<void> {
  const roles = [...new Set(roleIds.map(id => id.toLowerCase()))]
  if (!(await replaceRoles(tx, { org, user, roles }))) {
    throw new Refusal('missing', 'No such role', 'GET /v1/orgs/:orgId/roles lists them')
  }
  await requireAllowedTagsLimit(tx, { user })
}
