import { refusal } from '#shared/core/refusal.ts'
import { normalizeLabels, normalizeName } from '#shared/org/base/normalize.ts'
import type { OrgAdmin } from '#shared/org/base/policy-change.ts'
import { policyResource } from '#shared/org/base/policy-resource.ts'
import {
  insertRole,
  maxAllowedLabels,
  roleRows,
  updateRole,
  type RoleChange,
  type RoleRow,
} from '#shared/org/base/roles.postgres.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'

const roles = policyResource({
  name: 'role',
  rows: roleRows,
  conflictMessage: 'The organization has a role of this name already',
  toRecorded: ({ name, allowedTags }: RoleRow) => ({ name, allowed_tags: allowedTags }),
})

export const { remove: removeRole } = roles

/**
 * Creates a role.
 *
 * @param id the operation of the request
 * @throws Refusal as `policyResource`; `invalid` for a blank name or label.
 */
export const createRole = (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
  id: string,
  { name, allowedTags }: { name: string; allowedTags: string[] },
): Promise<RoleRow> =>
  roles.create(backend, scope, id, tx => {
    const fields = { name: normalizeName(name, 'name'), allowedTags: normalizeLabels(allowedTags) }
    return insertRole(tx, { id, org: scope.org, ...fields })
  })

/**
 * Changes the given fields.
 *
 * @throws Refusal as `policyResource`; `invalid` for a blank name or label, and when the roles of a user would
 *   allow more than 1,000.
 */
export const changeRole = (
  backend: { postgres: Postgres },
  scope: OrgAdmin,
  id: string,
  { name, allowedTags }: RoleChange,
): Promise<RoleRow> =>
  roles.change(backend, scope, id, async tx => {
    await updateRole(tx, id, {
      name: name && normalizeName(name, 'name'),
      allowedTags: allowedTags && normalizeLabels(allowedTags),
    })
    if (allowedTags) await requireAllowedTagsLimit(tx, { role: id })
  })

/** All of them are read with every request of a member. */
const allowedTagsMax = 1_000

/**
 * Checks, after a change, how many tags the roles of a user allow.
 *
 * @param whose the users of a role, one user, or all of an organization
 * @throws Refusal `invalid` when they are more than 1,000.
 */
export async function requireAllowedTagsLimit(
  tx: Transaction,
  whose: { role: string } | { user: string } | { org: string },
): Promise<void> {
  if ((await maxAllowedLabels(tx, whose)) <= allowedTagsMax) return
  throw refusal('invalid', 'tooManyAllowedTags', { allowedTagsMax })
}
