import { policyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type GroupRow = {
  id: string
  name: string
  /** As the directory calls it. */
  externalId: string | null
  /** Members by id, with the organization's id of each. */
  members: { id: string; name: string }[]
  createdAt: Date
  updatedAt: Date | null
}

/** Groups with their members. */
export const groupRows = policyRows<GroupRow>(
  'org_groups',
  `p.id, p.name, p.external_id as "externalId", p.created_at as "createdAt", p.updated_at as "updatedAt",
   coalesce((select json_agg(json_build_object('id', u.id, 'name', u.team_member_id) order by u.id)
             from org_group_members m join org_users u on u.id = m.org_user
             where m.org_group = p.id), '[]') as members`,
)

/** SQL of what a filter of SCIM asks of the group `p`, by attribute; `$` is the value. */
export const groupConditions = {
  id: 'p.id::text = lower($)',
  displayname: 'lower(p.name) = lower($)',
  externalid: 'p.external_id = $',
  'members.value': `exists (select from org_group_members m
                            where m.org_group = p.id and m.org_user::text = lower($))`,
}

/**
 * Writes a group with its members.
 *
 * @returns the ids of members that the organization has not: nothing is written then.
 * @throws a unique violation when another group has that name.
 */
export async function writeGroup(
  { query }: Transaction,
  group: Pick<GroupRow, 'id' | 'name' | 'externalId'> & { org: string; members: readonly string[] },
): Promise<string[]> {
  const { id, org, name, externalId, members } = group
  const { rows: unknown } = await query<{ id: string }>(
    `select given.id from unnest($2::text[]) given(id)
     where not exists (select from org_users u where u.org = $1 and u.id::text = lower(given.id))`,
    [org, members],
  )
  if (unknown.length > 0) return unknown.map(({ id }) => id)
  await query(
    `insert into org_groups (id, org, name, external_id) values ($1, $2, $3, $4)
     on conflict (id) do update
     set name = excluded.name, external_id = excluded.external_id, updated_at = now()`,
    [id, org, name, externalId],
  )
  await query(
    'delete from org_group_members where org_group = $1 and not org_user = any($2::uuid[])',
    [id, members],
  )
  await query(
    `insert into org_group_members (org_group, org_user)
     select $1, given from unnest($2::uuid[]) given on conflict do nothing`,
    [id, members],
  )
  return []
}

/** What the members of a group get. */
export type GroupGrant = { group: string; roleIds: string[]; reviews: boolean }

/** How members come and go; `required`: they have to sign in, and what that makes lasts for so many hours. */
export type DirectorySettings = { required: boolean; hours: number; grants: GroupGrant[] }

export async function readDirectorySettings(query: Query, org: string): Promise<DirectorySettings> {
  const { rows } = await query<DirectorySettings>(
    `select sign_in_required as required, sign_in_hours as hours, coalesce((
       select json_agg(g order by g.first) from (
         select group_name as "group", bool_or(role is null) as reviews, min(position) as first,
                coalesce(json_agg(role order by position) filter (where role is not null), '[]') as "roleIds"
         from org_group_grants where org = $1 group by group_name) g), '[]') as grants
     from orgs where id = $1`,
    [org],
    'directory.settings',
  )
  return rows[0]!
}

/** Writes the settings that are given. */
export async function updateSignIn(
  { query }: Transaction,
  org: string,
  { required, hours }: { required?: boolean | undefined; hours?: number | undefined },
): Promise<void> {
  await query(
    `update orgs set sign_in_required = coalesce($2, sign_in_required),
       sign_in_hours = coalesce($3, sign_in_hours) where id = $1`,
    [org, required ?? null, hours ?? null],
  )
}

/** Replaces the grants of an organization. @returns false, with nothing changed, when it has not all of the roles. */
export async function replaceGrants(
  { query }: Transaction,
  org: string,
  grants: readonly GroupGrant[],
): Promise<boolean> {
  const items = grants.flatMap(({ group, roleIds, reviews }) =>
    [...roleIds, ...(reviews ? [null] : [])].map(role => ({ group, role })),
  )
  const roles = [...new Set(items.flatMap(({ role }) => role?.toLowerCase() ?? []))]
  const { rows } = await query<{ known: number }>(
    'select count(*)::int as known from org_roles where org = $1 and id::text = any($2)',
    [org, roles],
  )
  if (rows[0]!.known !== roles.length) return false
  await query('delete from org_group_grants where org = $1', [org])
  await query(
    `insert into org_group_grants (org, position, group_name, role)
     select $1, row_number() over (), "group", role
     from jsonb_to_recordset($2::jsonb) as given("group" text, role uuid)`,
    [org, JSON.stringify(items)],
  )
  return true
}

/** SQL of what groups give the members of the organization $1 now: member, email, and a role or null for reviewing. */
const givenSql = `
  select distinct u.id as org_user, u.email, g.role
  from org_users u join org_group_grants g on g.org = u.org
  where u.org = $1 and u.suspended_at is null and (
    exists (select from unnest(u.oidc_groups) named where lower(named) = lower(g.group_name))
    or exists (select from org_group_members m join org_groups s on s.id = m.org_group
               where m.org_user = u.id and (lower(s.name) = lower(g.group_name) or s.external_id = g.group_name)))`

/** Gives members the roles of their groups, and takes those that none gives any more. @returns what is different, by member. */
export async function applyGrantedRoles(
  { query }: Transaction,
  org: string,
): Promise<{ user: string; added: string[]; removed: string[] }[]> {
  const { rows } = await query<{ user: string; added: string[]; removed: string[] }>(
    `with given as (${givenSql}), removed as (
       delete from org_user_roles held using org_users u
       where u.id = held.org_user and u.org = $1 and held.by_group and not exists (
         select from given where given.org_user = held.org_user and given.role = held.role)
       returning held.org_user, held.role
     ), added as (
       insert into org_user_roles (org_user, role, position, by_group)
       select org_user, role, 1000, true from given where role is not null
       on conflict do nothing returning org_user, role
     ), changed as (
       select org_user, role, true as is_new from added
       union all select org_user, role, false from removed
     )
     select c.org_user as "user",
            array_agg(r.name order by r.name) filter (where is_new) as added,
            array_agg(r.name order by r.name) filter (where not is_new) as removed
     from changed c join org_roles r on r.id = c.role group by c.org_user order by c.org_user`,
    [org],
    'groups.apply-roles',
  )
  return rows.map(row => ({ ...row, added: row.added ?? [], removed: row.removed ?? [] }))
}

/**
 * Makes reviewers of those whom a group lets review, without a credential, and removes those whom none does any more.
 *
 * @returns the emails that are new, and those that have gone, with the ids of the reviewers.
 */
export async function applyGrantedReviews(
  { query }: Transaction,
  org: string,
  actor: string,
): Promise<{ id: string; email: string; isNew: boolean }[]> {
  const { rows } = await query<{ id: string; email: string; isNew: boolean }>(
    `with given as (${givenSql}), removed as (
       delete from org_reviewers r where r.org = $1 and r.by_group and not exists (
         select from given where given.email = r.email and given.role is null)
       returning id, email
     ), added as (
       insert into org_reviewers (id, org, email, hash, masked, created_by, by_group)
       select gen_random_uuid(), $1, email, sha256(gen_random_uuid()::text::bytea), '', $2, true
       from given where role is null and email is not null
       on conflict do nothing returning id, email
     )
     select id, email, true as "isNew" from added union all select id, email, false from removed`,
    [org, actor],
    'groups.apply-reviews',
  )
  return rows
}
