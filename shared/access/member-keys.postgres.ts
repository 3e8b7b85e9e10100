import { unexpiredSql } from '#shared/access/key-row.postgres.ts'
import { revokedKeyColumns, type RevokedKey } from '#shared/access/revoked-key.ts'
import { isUuid } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A key of an organization: of a member or, without a user, the organization's own. */
export type MemberKeyRow = {
  id: string
  org: string
  user: string | null
  teamMemberId: string
  masked: string
  /** The raw key, sealed to this row. */
  sealed: string
  createdAt: Date
  active: boolean
  revokedAt: Date | null
  lastUsedAt: Date | null
  /** Turns that are stored with it may be shared. */
  shares: boolean
}

const columns = `k.id, k.org, k.org_user as "user", coalesce(u.team_member_id, '') as "teamMemberId",
  k.masked, k.sealed, k.created_at as "createdAt", k.revoked_at is null as active,
  k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt", k.shares`

const fromClause = 'memory_keys k left join org_users u on u.id = k.org_user'

/** The holder of a key; empty where unknown. */
export type KeyHolder = { email: string; firstName: string; lastName: string }

/** Keys of members, oldest first, with revoked ones, without the organization's own. */
export async function listMemberKeys(
  query: Query,
  org: string,
): Promise<(MemberKeyRow & KeyHolder)[]> {
  const { rows } = await query<MemberKeyRow & KeyHolder>(
    `select ${columns}, coalesce(u.email, '') as email, coalesce(u.first_name, '') as "firstName",
            coalesce(u.last_name, '') as "lastName"
     from ${fromClause}
     where k.org = $1 and k.kind = 'member' and k.org_user is not null order by k.created_at, k.id`,
    [org],
    'members.keys',
  )
  return rows
}

/**
 * One key of an organization; it may be revoked.
 *
 * @param key its id, or the hash of the raw key
 */
export async function findMemberKey(
  query: Query,
  org: string,
  key: { id: string } | { hash: Buffer },
): Promise<MemberKeyRow | undefined> {
  const [id, hash] = 'id' in key ? [key.id, null] : [null, key.hash]
  if (id !== null && !isUuid(id)) return undefined
  const { rows } = await query<MemberKeyRow>(
    `select ${columns} from ${fromClause}
     where k.org = $1 and k.kind = 'member' and (k.id = $2 or k.hash = $3)`,
    [org, id, hash],
    'members.key',
  )
  return rows[0]
}

/** The organization's own key, unless it is revoked. */
export async function findOrgKey(query: Query, org: string): Promise<MemberKeyRow | undefined> {
  const { rows } = await query<MemberKeyRow>(
    `select ${columns} from ${fromClause}
     where k.org = $1 and k.kind = 'member' and k.org_user is null and k.revoked_at is null`,
    [org],
  )
  return rows[0]
}

/** Revokes a key; a second call keeps the time of the first. @returns the key, if it was live. */
export async function revokeMemberKey(tx: Transaction, id: string): Promise<RevokedKey[]> {
  const { rows } = await tx.query<RevokedKey>(
    `update memory_keys set revoked_at = now() where id = $1 and revoked_at is null
     returning ${revokedKeyColumns}`,
    [id],
  )
  return rows
}

/** Revokes the keys of a user: the standard ones of the private vault, or all. @returns the live ones. */
export async function revokeUserKeys(
  tx: Transaction,
  user: string,
  kind: 'user' | 'all' = 'user',
): Promise<RevokedKey[]> {
  const { rows } = await tx.query<RevokedKey>(
    `update memory_keys set revoked_at = now()
     where org_user = $1 and ($2 = 'all' or kind = $2) and revoked_at is null
     returning ${revokedKeyColumns}`,
    [user, kind],
  )
  return rows
}

/** Deletes the keys of an organization, or of one of its users. @returns the live ones. */
export async function deleteMemberKeys(
  tx: Transaction,
  { org, user = null }: { org: string; user?: string | null },
): Promise<RevokedKey[]> {
  const { rows } = await tx.query<RevokedKey>(
    `with deleted as (
       delete from memory_keys where org = $1 and ($2::uuid is null or org_user = $2) returning *
     )
     select ${revokedKeyColumns} from deleted k
     where revoked_at is null and ${unexpiredSql} order by created_at, id`,
    [org, user],
  )
  return rows
}

/** Records the last use of keys, to the minute. */
export async function recordKeyUse(query: Query, hashes: readonly Buffer[]): Promise<void> {
  await query(
    `update memory_keys set last_used_at = now()
     where hash = any($1) and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
    [hashes],
    'members.note-use',
  )
}
