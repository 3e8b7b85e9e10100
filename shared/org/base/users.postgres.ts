import { policyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A member of an organization (the glossary's word; tables say user). The directory keeps members by SCIM. */
export type UserRow = {
  id: string
  org: string
  vault: string
  teamMemberId: string
  email: string | null
  firstName: string | null
  lastName: string | null
  /** In the order of the last assignment. */
  roles: { role_id: string; name: string }[]
  /** A live key opens the private vault. */
  hasKey: boolean
  /** The member lets what they say be shared. */
  shares: boolean
  /** False: the directory has switched the member off. */
  active: boolean
  /** As the directory calls the member. */
  externalId: string | null
  createdAt: Date
  updatedAt: Date | null
}

const userColumns = `p.id, p.org, p.vault, p.team_member_id as "teamMemberId", p.email,
  p.first_name as "firstName", p.last_name as "lastName", p.created_at as "createdAt", p.shares,
  p.suspended_at is null as active, p.external_id as "externalId", p.updated_at as "updatedAt",
  coalesce((select json_agg(json_build_object('role_id', r.id, 'name', r.name) order by held.position)
            from org_user_roles held join org_roles r on r.id = held.role
            where held.org_user = p.id), '[]') as roles,
  exists (select from memory_keys k where k.org_user = p.id and k.revoked_at is null) as "hasKey"`

/** Users with their roles. A user is deleted with roles and keys; the private vault stays. */
export const userRows = policyRows<UserRow>('org_users', userColumns)

/** Finds a user by name or email. */
export async function findUserByName(
  query: Query,
  org: string,
  name: string,
): Promise<UserRow | undefined> {
  const { rows } = await query<UserRow>(
    `select ${userColumns} from org_users p where p.org = $1 and (p.team_member_id = $2 or p.email = $2)`,
    [org, name],
    'users.find-by-name',
  )
  return rows[0]
}

/** A member as a directory sees it, with its groups. */
export type DirectoryRow = UserRow & { groups: { id: string; name: string }[] }

export const directoryRows = policyRows<DirectoryRow>(
  'org_users',
  `${userColumns}, coalesce((
     select json_agg(json_build_object('id', g.id, 'name', g.name) order by g.name)
     from org_group_members m join org_groups g on g.id = m.org_group where m.org_user = p.id), '[]') as groups`,
  'directory_users',
)

/** SQL of what a filter of SCIM asks of the user `p`, by attribute; `$` is the value. */
export const userConditions = {
  id: 'p.id::text = lower($)',
  username: 'lower(p.team_member_id) = lower($)',
  externalid: 'p.external_id = $',
  emails: 'p.email = lower($)',
  'emails.value': 'p.email = lower($)',
  active: '(p.suspended_at is null)::text = lower($)',
}

/** @throws a unique violation when another user has that name or email. */
export async function insertUser(
  tx: Transaction,
  user: Pick<UserRow, 'id' | 'org' | 'vault' | 'teamMemberId' | 'email' | 'firstName' | 'lastName'>,
): Promise<void> {
  await tx.query(
    `insert into org_users (id, org, vault, team_member_id, email, first_name, last_name)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [user.id, user.org, user.vault, user.teamMemberId, user.email, user.firstName, user.lastName],
  )
}

export type UserChange = {
  email?: string | undefined
  firstName?: string | undefined
  lastName?: string | undefined
}

/**
 * Changes the given fields. A `team_member_id` that equals the email follows it.
 *
 * @throws a unique violation when another user has that email.
 */
export async function updateUser(
  tx: Transaction,
  id: string,
  { email, firstName, lastName }: UserChange,
): Promise<void> {
  await tx.query(
    `update org_users set
       team_member_id = case when team_member_id = email then coalesce($2, email)
                             else team_member_id end,
       email = coalesce($2, email), first_name = coalesce($3, first_name),
       last_name = coalesce($4, last_name), updated_at = now()
     where id = $1`,
    [id, email ?? null, firstName ?? null, lastName ?? null],
  )
}

/** What a directory says of a member. */
export type DirectoryChange = Pick<
  UserRow,
  'teamMemberId' | 'email' | 'firstName' | 'lastName' | 'externalId' | 'active'
>

/** Writes what a directory says of a member. @throws a unique violation when another user has that name or email. */
export async function updateDirectoryUser(
  { query }: Transaction,
  id: string,
  { teamMemberId, email, firstName, lastName, externalId, active }: DirectoryChange,
): Promise<void> {
  await query(
    `update org_users set team_member_id = $2, email = $3, first_name = $4, last_name = $5,
       external_id = $6, suspended_at = case when not $7 then coalesce(suspended_at, now()) end,
       directory = true, updated_at = now()
     where id = $1`,
    [id, teamMemberId, email, firstName, lastName, externalId, active],
  )
}

/** The organizations, with their accounts, of which an email is a member who named other groups before. */
export async function orgsWithOtherGroups(
  query: Query,
  ...values: [email: string, groups: readonly string[]]
): Promise<{ org: string; account: string }[]> {
  const found = `select o.id as org, o.account from org_users u join orgs o on o.id = u.org
     where u.email = $1 and u.oidc_groups is distinct from $2::text[]`
  return (await query<{ org: string; account: string }>(found, values, 'users.other-groups')).rows
}

/** Notes the groups that a sign-in has named. */
export const updateSignInGroups = (
  { query }: Transaction,
  ...values: [org: string, email: string, groups: readonly string[]]
): Promise<unknown> =>
  query('update org_users set oidc_groups = $3 where org = $1 and email = $2', values)

/**
 * Gives a user these roles, beside those that groups give. @returns false, with nothing changed, when the organization
 * has not all of them.
 */
export async function replaceRoles(
  tx: Transaction,
  { org, user, roles }: { org: string; user: string; roles: readonly string[] },
): Promise<boolean> {
  const { rows } = await tx.query<{ known: number }>(
    'select count(*)::int as known from org_roles where org = $1 and id = any($2::uuid[])',
    [org, roles],
  )
  if (rows[0]!.known !== roles.length) return false
  await tx.query('delete from org_user_roles where org_user = $1 and not by_group', [user])
  await tx.query(
    `insert into org_user_roles (org_user, role, position)
     select $1, role, position from unnest($2::uuid[]) with ordinality as given(role, position)
     on conflict (org_user, role) do update set position = excluded.position`,
    [user, roles],
  )
  return true
}

export type OrgKeyRow = {
  id: string
  /** `member`: opens the private and the shared vault; `user`: the private one. */
  kind: 'member' | 'user'
  /** Null: the organization's own. */
  user: string | null
  teamMemberId: string | null
  masked: string
  createdAt: Date
  revokedAt: Date | null
  lastUsedAt: Date | null
}

/** Lists the keys of an organization, revoked ones too, after an id, in the order of their ids. */
export async function orgKeysAfter(
  query: Query,
  org: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<OrgKeyRow[]> {
  const { rows } = await query<OrgKeyRow>(
    `select k.id, k.kind, k.org_user as "user", u.team_member_id as "teamMemberId", k.masked,
            k.created_at as "createdAt", k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt"
     from memory_keys k left join org_users u on u.id = k.org_user
     where k.org = $1 and ($2::uuid is null or k.id > $2) order by k.id limit $3`,
    [org, after, limit],
  )
  return rows
}
