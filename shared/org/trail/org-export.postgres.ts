import type { Query } from '#shared/storage/postgres/connect.ts'
import { userColumns, type UserRow } from '#shared/org/base/users.postgres.ts'

type ExportPage = { after: string | null; limit: number }

/** Users of an organization with their roles, after an id, in the order of their ids. */
export async function usersAfter(
  query: Query,
  org: string,
  { after, limit }: ExportPage,
): Promise<UserRow[]> {
  const { rows } = await query<UserRow>(
    `select ${userColumns} from org_users u
     where u.org = $1 and ($2::uuid is null or u.id > $2) order by u.id limit $3`,
    [org, after, limit],
  )
  return rows
}

/** A key of an organization, without its raw form. */
export type OrgKeyRow = {
  id: string
  /** Opens a member's private vault and the shared one, or the private one alone. */
  kind: 'member' | 'user'
  /** Null: the organization's own. */
  user: string | null
  teamMemberId: string | null
  masked: string
  createdAt: Date
  revokedAt: Date | null
  lastUsedAt: Date | null
}

/** Every key of an organization, revoked ones too, after an id, in the order of their ids. */
export async function orgKeysAfter(
  query: Query,
  org: string,
  { after, limit }: ExportPage,
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
