import type { MemberScope } from '#shared/org/scope.ts'
import type { Query, Transaction } from '#shared/postgres/connect.ts'
import { inForce, type Redaction, type StoredRedaction } from '#shared/redaction/policy.ts'

/**
 * `vault`: opens one vault and speaks for its account. `member`: opens a member's private vault and what
 * they may see of their organization's; `user`: the private vault alone.
 */
export type MemoryKeyKind = 'vault' | 'member' | 'user'

/** Everything a request needs to know about the key it came with, its vault and its account. */
export type KeyRow = {
  vault: string
  account: string
  kind: MemoryKeyKind
  /** Of a member key: what it may see of the shared memory. */
  member: MemberScope | null
  epoch: number
  revision: number
  paymentMethod: string | null
  balance: number | null
  /** Pieces of work that are promised for the vault and not done. */
  pending: number
  /** What becomes of private data in what is stored with it. */
  redaction: Redaction | null
  rawUnits: number
  rawTokens: number
  tier2Count: number
  tier2Importance: number
  tier2Tokens: number
}

type KeyColumns = {
  vault: string
  account: string
  kind: MemoryKeyKind
  member: Omit<MemberScope, 'wildcard'> | null
  epoch: number
  revision: string
  payment_method: string | null
  balance: string | null
  pending: number
  redaction: StoredRedaction | null
  raw_units: number
  raw_tokens: string
  tier2_count: number
  tier2_importance: number
  tier2_tokens: string
}

/**
 * What a member key may see: the roles of its user as they are now. The organization's own key has no
 * user and so no roles. Nothing is looked up for keys that belong to no organization.
 */
const memberOfKey = `
  select json_build_object(
    'org', o.id, 'memberId', coalesce(u.id, o.id), 'teamMemberId', coalesce(u.team_member_id, o.name),
    'orgVault', o.vault, 'orgEpoch', ov.epoch, 'orgRevision', ov.revision,
    'policyVersion', o.policy_version,
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

/**
 * The key with this hash, its vault as it is now and its account: the one read every request makes,
 * so that a revocation, a deletion or a write elsewhere counts from the next request on.
 *
 * @returns undefined when there is no such key, or it is revoked or expired.
 */
export async function findKey(query: Query, hash: Buffer): Promise<KeyRow | undefined> {
  return (await findKeys(query, [hash]))[0]
}

/** The same for several keys in one read, in the order of their hashes. */
export async function findKeys(
  query: Query,
  hashes: readonly Buffer[],
): Promise<(KeyRow | undefined)[]> {
  const { rows } = await query<KeyColumns & { n: number }>(
    `select asked.n, k.vault, k.account, k.kind, v.epoch, v.revision, v.pending, a.payment_method,
            a.balance, v.raw_units, v.raw_tokens, v.tier2_count, v.tier2_importance, v.tier2_tokens,
            case when k.org is null then a.redaction
                 else coalesce((select redaction from orgs where id = k.org), a.redaction)
            end as redaction,
            case when k.kind = 'member' then (${memberOfKey}) end as member
     from unnest($1::bytea[]) with ordinality asked(hash, n)
     join memory_keys k on k.hash = asked.hash
     join vaults v on v.id = k.vault
     join accounts a on a.id = k.account
     where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`,
    [hashes],
    'keys.find',
  )
  const found: (KeyRow | undefined)[] = hashes.map(() => undefined)
  for (const row of rows) found[row.n - 1] = keyRowOf(row)
  return found
}

function keyRowOf(row: KeyColumns): KeyRow {
  return {
    vault: row.vault,
    account: row.account,
    kind: row.kind,
    member: row.member && memberOf(row.member),
    epoch: row.epoch,
    revision: Number(row.revision),
    paymentMethod: row.payment_method,
    balance: row.balance === null ? null : Number(row.balance),
    pending: row.pending,
    redaction: inForce(row.redaction),
    rawUnits: row.raw_units,
    rawTokens: Number(row.raw_tokens),
    tier2Count: row.tier2_count,
    tier2Importance: row.tier2_importance,
    tier2Tokens: Number(row.tier2_tokens),
  }
}

const memberOf = (row: Omit<MemberScope, 'wildcard'>): MemberScope => ({
  ...row,
  allowedTags: row.allowedTags.filter(label => label !== '*'),
  wildcard: row.allowedTags.includes('*'),
})

export type NewKey = {
  hash: Buffer
  vault: string
  account: string
  kind: MemoryKeyKind
  name: string
  masked: string
  expiresAt: Date | null
}

/** @returns when it was created. */
export async function insertKey(tx: Transaction, key: NewKey): Promise<Date> {
  const { rows } = await tx.query<{ created_at: Date }>(
    `insert into memory_keys (hash, vault, account, kind, name, masked, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7) returning created_at`,
    [key.hash, key.vault, key.account, key.kind, key.name, key.masked, key.expiresAt],
  )
  return rows[0]!.created_at
}

/** Ends a key of an account; it is refused from the next request on. False when there is none to end. */
export async function revokeKey(query: Query, account: string, hash: Buffer): Promise<boolean> {
  const { rowCount } = await query(
    `update memory_keys set revoked_at = now()
     where hash = $1 and account = $2 and revoked_at is null`,
    [hash, account],
  )
  return rowCount === 1
}

export type EndedKey = { vault: string; account: string; name: string; expiresAt: Date }

/** Lets a live key expire after so many seconds at the latest; undefined when it is not live any more. */
export async function endKey(
  tx: Transaction,
  hash: Buffer,
  seconds: number,
): Promise<EndedKey | undefined> {
  const { rows } = await tx.query<EndedKey>(
    `update memory_keys
     set expires_at = least(expires_at, now() + make_interval(secs => $2))
     where hash = $1 and revoked_at is null and (expires_at is null or expires_at > now())
     returning vault, account, name, expires_at as "expiresAt"`,
    [hash, seconds],
  )
  return rows[0]
}
