import type { MemberScope } from '#shared/domain/member-scope.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * What a member may see by their current roles: part of a statement in which `k` has the columns
 * `org` and `org_user`. The organization's own key has no user and so no roles. Keys without an
 * organization cost no lookup.
 */
export const memberScopeSql = `
  select json_build_object(
    'org', o.id, 'memberId', coalesce(u.id, o.id), 'teamMemberId', coalesce(u.team_member_id, o.name),
    'orgVault', o.vault, 'orgEpoch', ov.epoch, 'orgRevision', ov.revision,
    'orgSpace', o.space, 'policyVersion', o.policy_version,
    'allowedTags', array(
      with allowed as (
        select a.label from org_user_roles held join org_roles r on r.id = held.role,
               unnest(r.allowed_tags) a(label)
        where held.org_user = k.org_user
      )
      select label from allowed
      union select f.label from allowed a join org_tags t on t.org = o.id and t.label = a.label,
                   unnest(t.former) f(label))
  )
  from orgs o join vaults ov on ov.id = o.vault left join org_users u on u.id = k.org_user
  where o.id = k.org`

/** What `memberOfKey` reads. */
export type MemberColumns = Omit<MemberScope, 'wildcard'>

export const toMemberScope = (row: MemberColumns): MemberScope => ({
  ...row,
  allowedTags: row.allowedTags.filter(label => label !== '*'),
  wildcard: row.allowedTags.includes('*'),
})

/** What the author of a turn may see now; undefined once the turn is gone. */
export async function findAuthorScope(
  query: Query,
  turn: string,
): Promise<MemberScope | undefined> {
  const { rows } = await query<{ member: MemberColumns }>(
    `select (${memberScopeSql}) as member from (select org, org_user from org_turns where id = $1) k`,
    [turn],
    'members.author',
  )
  return rows[0] && toMemberScope(rows[0].member)
}
