import { policyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

export type RoleRow = {
  id: string
  org: string
  name: string
  /** Labels of tags, each once; `*` is every tag. */
  allowedTags: string[]
  createdAt: Date
}

/** Roles are deleted from their users too. */
export const roleRows = policyRows<RoleRow>(
  'org_roles',
  'id, org, name, allowed_tags as "allowedTags", created_at as "createdAt"',
)

/** @throws a unique violation when another role has that name. */
export async function insertRole(
  tx: Transaction,
  { id, org, name, allowedTags }: Omit<RoleRow, 'createdAt'>,
): Promise<void> {
  await tx.query('insert into org_roles (id, org, name, allowed_tags) values ($1, $2, $3, $4)', [
    id,
    org,
    name,
    allowedTags,
  ])
}

export type RoleChange = { name?: string | undefined; allowedTags?: string[] | undefined }

/** Changes the given fields. @throws a unique violation when another role has that name. */
export async function updateRole(
  tx: Transaction,
  id: string,
  { name, allowedTags }: RoleChange,
): Promise<void> {
  await tx.query(
    `update org_roles set name = coalesce($2, name), allowed_tags = coalesce($3, allowed_tags)
     where id = $1`,
    [id, name ?? null, allowedTags ?? null],
  )
}

/** Counts the distinct labels that the roles of a user allow: of this user, or the most of any user of a role or an organization. */
export async function maxAllowedLabels(
  { query }: Pick<Transaction, 'query'>,
  { role = null, user = null, org = null }: Partial<Record<'role' | 'user' | 'org', string | null>>,
): Promise<number> {
  const { rows } = await query<{ most: number }>(
    `select coalesce(max(labels), 0)::int as most from (
       select count(distinct label) as labels
       from org_user_roles held join org_roles r on r.id = held.role, unnest(r.allowed_tags) a(label)
       where held.org_user in (
         select org_user from org_user_roles where role = $1::uuid or org_user = $2::uuid)
         or r.org = $3::uuid
       group by held.org_user) people`,
    [role, user, org],
  )
  return rows[0]!.most
}

/** Replaces a label in every role of an organization; null removes it. */
export async function relabelRoles(
  tx: Transaction,
  org: string,
  { from, to }: { from: string; to: string | null },
): Promise<void> {
  await tx.query(
    `update org_roles set allowed_tags = array(
       select case when label = $2 then $3 else label end
       from unnest(allowed_tags) with ordinality as allowed(label, n)
       where not (label = $2 and ($3::text is null or $3 = any(allowed_tags)))
       order by n)
     where org = $1 and $2 = any(allowed_tags)`,
    [org, from, to],
  )
}
