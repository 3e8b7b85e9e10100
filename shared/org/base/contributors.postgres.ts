import type { Query } from '#shared/storage/postgres/connect.ts'

/** A member by what the team's memory has from them. */
export type Contributor = {
  teamMemberId: string
  /** Facts that were found in what they said. */
  statements: number
  lastSaidAt: Date
}

/**
 * Lists the members whose statements of a time the shared memory has, most first.
 *
 * @param span.from when the oldest of these was said
 */
export async function listContributors(
  query: Query,
  org: string,
  { from, limit }: { from: Date; limit: number },
): Promise<Contributor[]> {
  // For each member a range of `shared_statements_of_user`, without the rows: a join would read all of the table's.
  const { rows } = await query<Contributor>(
    `select u.team_member_id as "teamMemberId", s.statements, s.last_said_at as "lastSaidAt"
     from org_users u cross join lateral (
       select count(*)::int as statements, max(said_at) as last_said_at
       from shared_statements
       where org_user = u.id and said_at >= $2 and removed_at is null and withdrawn_at is null
     ) s
     where u.org = $1 and s.statements > 0
     order by s.statements desc, u.team_member_id limit $3`,
    [org, from, limit],
    'contributors.list',
  )
  return rows
}

/** How far an organization is set up, and when a key of a member was last used. */
export type OrgCounts = {
  members: number
  /** Members with a key that works. */
  withKey: number
  /** Tags that the classifier knows. */
  tags: number
  lastUsedAt: Date | null
}

/** Counts the members, their keys and the tags of an organization. */
export async function countOrg(query: Query, org: string): Promise<OrgCounts> {
  const { rows } = await query<OrgCounts>(
    `select (select count(*)::int from org_users where org = $1) as members,
            (select count(*)::int from org_tags where org = $1) as tags,
            count(distinct k.org_user)
              filter (where k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))::int
              as "withKey",
            max(k.last_used_at) as "lastUsedAt"
     from memory_keys k where k.org = $1 and k.kind = 'member' and k.org_user is not null`,
    [org],
    'orgs.count',
  )
  return rows[0]!
}
