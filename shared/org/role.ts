import { Refusal } from '#shared/core/errors.ts'
import type { Admin } from '#shared/access/admin.ts'
import { labelsAsked, nameAsked } from '#shared/org/normalize.ts'
import { changePolicy, organizationOf, removeOnce } from '#shared/org/policy.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  deleteRole,
  findRole,
  insertRole,
  listRoles,
  mostLabels,
  updateRole,
  type RoleChange,
  type RoleRow,
} from '#shared/org/roles.postgres.ts'

type Acting = { admin: Admin; org: string }

const taken = 'The organization has a role of this name already'

/**
 * Roles of an organization, oldest first.
 *
 * @throws Refusal `missing`.
 */
export async function rolesOf(
  { postgres }: { postgres: Postgres },
  { admin, org }: Acting,
): Promise<RoleRow[]> {
  await organizationOf(postgres.query, admin, org)
  return listRoles(postgres.query, org)
}

/**
 * Creates a role. The same operation again answers with the role it made.
 *
 * @param operation becomes the role's id
 * @throws Refusal `missing`; `invalid` for a blank name or label; `conflict` when the organization has
 *   one of that name.
 */
export const createRole = (
  backend: { postgres: Postgres },
  { admin, org }: Acting,
  operation: string,
  { name, allowedTags }: { name: string; allowedTags: string[] },
): Promise<RoleRow> =>
  changePolicy(backend, { admin, org, taken }, async tx => {
    const asked = { name: nameAsked(name, 'name'), allowedTags: labelsAsked(allowedTags) }
    const made = await findRole(tx.query, org, operation)
    if (made) return made
    await insertRole(tx, { id: operation, org, ...asked })
    return roleOf(tx.query, org, operation)
  })

/**
 * Writes what is given.
 *
 * @throws Refusal `missing`; `invalid` for a blank name or label, and when somebody's roles would allow
 *   more than 1,000; `conflict` when another role has that name.
 */
export const changeRole = (
  backend: { postgres: Postgres },
  { admin, org }: Acting,
  id: string,
  { name, allowedTags }: RoleChange,
): Promise<RoleRow> =>
  changePolicy(backend, { admin, org, taken }, async tx => {
    await roleOf(tx.query, org, id)
    await updateRole(tx, id, {
      name: name && nameAsked(name, 'name'),
      allowedTags: allowedTags && labelsAsked(allowedTags),
    })
    if (allowedTags) await requireFewLabels(tx, { role: id })
    return roleOf(tx.query, org, id)
  })

/**
 * Removes a role and takes it from everybody who holds it. The same operation again finds it done.
 *
 * @throws Refusal `missing`.
 */
export const removeRole = (
  backend: { postgres: Postgres },
  { admin, org }: Acting,
  id: string,
  operation: string,
): Promise<void> =>
  changePolicy(backend, { admin, org }, tx =>
    removeOnce(tx, { org, operation }, async () => {
      await roleOf(tx.query, org, id)
      await deleteRole(tx, id)
    }),
  )

/** They are read with every request of a member. */
const labelsMax = 1_000

/**
 * Holds the bound of what the roles of one person allow, at the end of a change.
 *
 * @param whose everybody who holds a role, or a user
 * @throws Refusal `invalid` when it is more than 1,000 labels.
 */
export async function requireFewLabels(
  tx: Transaction,
  whose: { role: string } | { user: string },
): Promise<void> {
  if ((await mostLabels(tx, whose)) <= labelsMax) return
  throw new Refusal(
    'invalid',
    `The roles of one person may allow ${labelsMax} tags together`,
    'A role with * allows all there are',
  )
}

async function roleOf(query: Query, org: string, id: string): Promise<RoleRow> {
  const role = await findRole(query, org, id)
  if (role) return role
  throw new Refusal('missing', 'No such role', 'GET /v1/orgs/:orgId/roles lists them')
}
