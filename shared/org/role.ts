import { Refusal } from '#shared/core/errors.ts'
import type { Admin } from '#shared/access/admin.ts'
import { normalizeLabels, normalizeName } from '#shared/org/normalize.ts'
import { changePolicy, requireOrganization, removeOnce } from '#shared/org/policy-change.ts'
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
} from '#shared/org/roles.postgres.ts'

type OrgAdmin = { admin: Admin; org: string }

const nameTaken = 'The organization has a role of this name already'

/**
 * Roles of an organization, oldest first.
 *
 * @throws Refusal `missing`.
 */
export async function listOrgRoles(
  { postgres }: { postgres: Postgres },
  { admin, org }: OrgAdmin,
): Promise<RoleRow[]> {
  await requireOrganization(postgres.query, admin, org)
  return listRoles(postgres.query, org)
}

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
    return requireRole(tx.query, org, operation)
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
    await requireRole(tx.query, org, id)
    await updateRole(tx, id, {
      name: name && normalizeName(name, 'name'),
      allowedTags: allowedTags && normalizeLabels(allowedTags),
    })
    if (allowedTags) await requireAllowedTagsLimit(tx, { role: id })
    return requireRole(tx.query, org, id)
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
  changePolicy(backend, { admin, org }, tx =>
    removeOnce(tx, { org, operation }, async () => {
      await requireRole(tx.query, org, id)
      await deleteRole(tx, id)
    }),
  )

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

async function requireRole(query: Query, org: string, id: string): Promise<RoleRow> {
  const role = await findRole(query, org, id)
  if (role) return role
  throw new Refusal('missing', 'No such role', 'GET /v1/orgs/:orgId/roles lists them')
}
