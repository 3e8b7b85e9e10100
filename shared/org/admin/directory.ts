import { insertVault } from '#shared/access/accounts.postgres.ts'
import { revokeUserKeys } from '#shared/access/member-keys.postgres.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { deleteReviewerOf, recordReviewer } from '#shared/org/admin/reviewers.ts'
import { requireAllowedTagsLimit } from '#shared/org/admin/role.ts'
import { users } from '#shared/org/admin/user.ts'
import {
  applyGrantedReviews,
  applyGrantedRoles,
  groupRows,
  writeGroup,
  type GroupRow,
} from '#shared/org/base/groups.postgres.ts'
import { isEmail, normalizeMemberId, normalizeName } from '#shared/org/base/normalize.ts'
import {
  changePolicy,
  digestOf,
  recordPolicyEvent,
  type OrgAdmin,
} from '#shared/org/base/policy-change.ts'
import { policyResource } from '#shared/org/base/policy-resource.ts'
import {
  directoryRows,
  insertUser,
  orgsWithOtherGroups,
  updateSignInGroups,
  updateDirectoryUser,
  userConditions,
  type DirectoryChange,
  type DirectoryRow,
} from '#shared/org/base/users.postgres.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type DirectoryBackend = { postgres: Postgres; queue: Queue }

/** A member as a directory describes it; `userName` is an email or any other name, who is not active is switched off. */
export type DirectoryUser = Omit<DirectoryChange, 'teamMemberId'> & { userName: string }

const conflictMessage = 'The organization has a user of this name or email already'

/**
 * Creates a member with a private vault.
 *
 * @throws Refusal `missing`; `conflict` for a name or email that another member has; `invalid` for a blank name.
 */
export const createDirectoryUser = (
  backend: DirectoryBackend,
  scope: OrgAdmin,
  id: string,
  user: DirectoryUser,
): Promise<DirectoryRow> =>
  changePolicy(backend, { ...scope, conflictMessage }, async tx => {
    const vault = await insertVault(tx, scope.admin.account)
    const names = { teamMemberId: id, email: null, firstName: null, lastName: null }
    await insertUser(tx, { id, org: scope.org, vault, ...names })
    return writeUser(tx, backend, scope, id, user)
  })

/**
 * Changes a member. One who is switched off loses every key, roles of groups and the review queue with the
 * transaction; the private vault stays, and so do the roles that an admin has given.
 *
 * @param change the member as it is to be, from what it is
 * @throws Refusal as `createDirectoryUser`, and what `change` throws.
 */
export const changeDirectoryUser = (
  backend: DirectoryBackend,
  scope: OrgAdmin,
  id: string,
  change: (before: DirectoryRow) => DirectoryUser,
): Promise<DirectoryRow> =>
  changePolicy(backend, { ...scope, conflictMessage }, async tx => {
    const before = await requireMember(tx, scope.org, id)
    return writeUser(tx, backend, scope, before.id, change(before), before)
  })

/** @param before missing for a new member */
async function writeUser(
  tx: Transaction,
  { queue }: DirectoryBackend,
  scope: OrgAdmin,
  id: string,
  user: DirectoryUser,
  before?: DirectoryRow,
): Promise<DirectoryRow> {
  const { org, admin } = scope
  const teamMemberId = normalizeName(normalizeMemberId(user.userName), 'userName')
  const email = user.email ?? (isEmail(teamMemberId) ? teamMemberId : null)
  const sameName = [[userConditions.username, teamMemberId]] as const
  const { rows } = await directoryRows.search(tx.query, org, sameName, { offset: 0, limit: 2 })
  if (rows.some(row => row.id !== id))
    throw new Refusal('conflict', conflictMessage, 'Choose another one')
  const names = { teamMemberId, email: email && normalizeMemberId(email) }
  await updateDirectoryUser(tx, id, { ...user, ...names })
  const after = await requireMember(tx, org, id)
  const isNew = before === undefined
  await users.record(tx, scope, isNew ? 'user.created' : 'user.changed', {
    before: before ?? null,
    after,
  })
  const wasActive = before?.active ?? true
  if (wasActive !== user.active) {
    if (wasActive) {
      const revoked = await revokeUserKeys(tx, id, 'all')
      await announceRevokedKeys(tx, queue, revoked, admin.email)
      await deleteReviewerOf(tx, scope, before?.email ?? null)
    }
    await recordPolicyEvent(tx, scope, {
      action: wasActive ? 'user.suspended' : 'user.resumed',
      subject: id,
      before: { team_member_id: teamMemberId, active: wasActive },
      after: { team_member_id: teamMemberId, active: user.active },
    })
  }
  await applyGrants(tx, scope)
  return requireMember(tx, org, id)
}

async function requireMember(tx: Transaction, org: string, id: string): Promise<DirectoryRow> {
  const row = await directoryRows.find(tx.query, org, id)
  if (row) return row
  throw new Refusal('missing', 'No such user')
}

const namesMax = 200

const groups = policyResource({
  name: 'group',
  rows: groupRows,
  conflictMessage: 'The organization has a group of this name already',
  toRecorded({ name, externalId, members }: GroupRow) {
    const names = members.map(({ name }) => name).toSorted()
    const told = names.length > namesMax ? [`${names.length} members`, digestOf(names)] : names
    return { name, external_id: externalId, members: told }
  },
})

/** A group as a directory describes it; members are ids. */
export type DirectoryGroup = Pick<GroupRow, 'name' | 'externalId'> & { members: readonly string[] }

/**
 * Creates a group; its members get what the organization grants it.
 *
 * @throws Refusal `missing`; `conflict` for a name that another group has; `invalid` for an unknown member.
 */
export const createGroup = (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
  id: string,
  group: DirectoryGroup,
): Promise<GroupRow> => groups.create(backend, scope, id, tx => write(tx, scope, { id, ...group }))

/** Changes a group. @param change the group as it is to be, from what it is @throws Refusal as `createGroup`. */
export const changeGroup = (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
  id: string,
  change: (before: GroupRow) => DirectoryGroup,
): Promise<GroupRow> =>
  groups.change(backend, scope, id, (tx, before) =>
    write(tx, scope, { id: before.id, ...change(before) }),
  )

/** Removes a group; what it gave its members ends. @throws Refusal `missing`. */
export async function removeGroup(
  backend: { postgres: Postgres },
  scope: OrgAdmin,
  id: string,
  operation: string,
): Promise<void> {
  await groups.remove(backend, scope, id, operation, async (tx, group) => {
    await writeGroup(tx, { ...group, org: scope.org, members: [] })
    await applyGrants(tx, scope)
  })
}

async function write(
  tx: Transaction,
  scope: OrgAdmin,
  { id, name, ...group }: DirectoryGroup & { id: string },
): Promise<void> {
  const row = { id, org: scope.org, name: normalizeName(name, 'displayName'), ...group }
  const [unknown] = await writeGroup(tx, row)
  if (unknown !== undefined)
    throw new Refusal('invalid', `The organization has no user ${unknown.slice(0, 64)}`)
  await applyGrants(tx, scope)
}

/**
 * Gives every member what their groups give now, and takes what none gives any more, with events.
 *
 * @throws Refusal `invalid` when the roles of a member would allow more than 1,000 tags.
 */
export async function applyGrants(tx: Transaction, scope: OrgAdmin): Promise<void> {
  const { org, admin } = scope
  const changed = await applyGrantedRoles(tx, org)
  if (changed.some(({ added }) => added.length > 0)) await requireAllowedTagsLimit(tx, { org })
  for (const { user, added, removed } of changed) {
    const after = await requireMember(tx, org, user)
    const kept = after.roles.filter(({ name }) => !added.includes(name))
    const before = { ...after, roles: [...kept, ...removed.map(name => ({ role_id: '', name }))] }
    await users.record(tx, scope, 'role.assigned', { before, after })
  }
  for (const { id, email, isNew } of await applyGrantedReviews(tx, org, admin.email)) {
    const row = { id, email, masked: '', createdBy: admin.email, createdAt: new Date(0) }
    if (isNew) await recordReviewer(tx, scope, 'reviewer.created', { after: row })
    else await recordReviewer(tx, scope, 'reviewer.deleted', { before: row })
  }
}

/** Notes the groups of a sign-in, and gives the members of that email what these give. */
export async function takeSignInGroups(
  { postgres }: { postgres: Postgres },
  email: string,
  groups: readonly string[],
): Promise<void> {
  for (const { org, account } of await orgsWithOtherGroups(postgres.query, email, groups)) {
    const admin = { email, account, keyHash: Buffer.alloc(32) }
    await changePolicy({ postgres }, { admin, org }, async tx => {
      await updateSignInGroups(tx, org, email, groups)
      await applyGrants(tx, { admin, org })
    })
  }
}
