import { Refusal } from '#shared/core/errors.ts'
import { normalizeLabels, normalizeName } from '#shared/org/base/normalize.ts'
import { changePolicy } from '#shared/org/base/policy-change.ts'
import {
  createPartRecorder,
  listParts,
  removePart,
  requirePart,
  type OrgAdmin,
} from '#shared/org/base/policy-part.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  deleteRole,
  findRole,
  insertRole,
  listRoles,
  maxAllowedLabels,
  updateRole,
  type RoleChange,
  type RoleRow,
} from '#shared/org/base/roles.postgres.ts'

const nameTaken = 'The organization has a role of this name already'

/**
 * Roles of an organization, oldest first.
 *
 * @throws Refusal `missing`.
 */
export const listOrgRoles = (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
): Promise<RoleRow[]> => listParts(backend, scope, listRoles)

/**
 * Creates a role. Repeated under the same operation it returns the role.
 *
 * @param operation becomes the role's id
 * @throws Refusal `missing`; `invalid` for a blank name or label; `conflict` when the organization has
 *   one of that name.
 */
export const createRole = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  operation: string,
  { name, allowedTags }: { name: string; allowedTags: string[] },
): Promise<RoleRow> =>
  changePolicy(backend, { admin, org, conflictMessage: nameTaken }, async tx => {
    const input = { name: normalizeName(name, 'name'), allowedTags: normalizeLabels(allowedTags) }
    const existing = await findRole(tx.query, org, operation)
    if (existing) return existing
    await insertRole(tx, { id: operation, org, ...input })
    const role = await requireRole(tx.query, org, operation)
    await recordRoleEvent(tx, { admin, org }, 'role.created', { after: role })
    return role
  })

/**
 * Changes the given fields.
 *
 * @throws Refusal `missing`; `invalid` for a blank name or label, and when the roles of a user would allow
 *   more than 1,000; `conflict` when another role has that name.
 */
export const changeRole = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  { name, allowedTags }: RoleChange,
): Promise<RoleRow> =>
  changePolicy(backend, { admin, org, conflictMessage: nameTaken }, async tx => {
    const before = await requireRole(tx.query, org, id)
    await updateRole(tx, id, {
      name: name && normalizeName(name, 'name'),
      allowedTags: allowedTags && normalizeLabels(allowedTags),
    })
    if (allowedTags) await requireAllowedTagsLimit(tx, { role: id })
    const after = await requireRole(tx.query, org, id)
    await recordRoleEvent(tx, { admin, org }, 'role.changed', { before, after })
    return after
  })

/**
 * Removes a role, from its users too. Repeated under the same operation it changes nothing.
 *
 * @throws Refusal `missing`.
 */
export const removeRole = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  id: string,
  operation: string,
): Promise<void> =>
  removePart(backend, { admin, org }, operation, async tx => {
    const role = await requireRole(tx.query, org, id)
    await deleteRole(tx, id)
    await recordRoleEvent(tx, { admin, org }, 'role.deleted', { before: role })
  })

/** They are read with every request of a member. */
const allowedTagsMax = 1_000

/**
 * Checks, at the end of a change, how many tags the roles of a user allow.
 *
 * @param whose the users of a role, or one user
 * @throws Refusal `invalid` when it is more than 1,000 labels.
 */
export async function requireAllowedTagsLimit(
  tx: Transaction,
  whose: { role: string } | { user: string },
): Promise<void> {
  if ((await maxAllowedLabels(tx, whose)) <= allowedTagsMax) return
  throw new Refusal(
    'invalid',
    `The roles of one person may allow ${allowedTagsMax} tags together`,
    'A role with * allows all there are',
  )
}

const recordRoleEvent = createPartRecorder<
  RoleRow,
  'role.created' | 'role.changed' | 'role.deleted'
>(({ name, allowedTags }) => ({ name, allowed_tags: allowedTags }))

const requireRole = async (query: Query, org: string, id: string): Promise<RoleRow> =>
  requirePart(await findRole(query, org, id), 'role')
