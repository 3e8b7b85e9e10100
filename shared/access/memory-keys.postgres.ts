import type { MemberScope } from '#shared/domain/member-scope.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  toMemberScope,
  memberScopeSql,
  type MemberColumns,
} from '#shared/access/member-scope.postgres.ts'
import {
  toActiveRedaction,
  type RedactionPolicy,
  type StoredRedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'

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
  /** The vault was made with its account: its keys speak for the account. */
  isOwnerVault: boolean
  /** Of a member key: what it may see of the shared memory. */
  memberScope: MemberScope | null
  /** Another key has taken its place: it works until its time of grace is over. */
  isRotated: boolean
  epoch: number
  revision: number
  /** The embedding model whose space the vault stands in; null: the default one's. */
  embeddingModel: string | null
  paymentMethod: string | null
  balance: number | null
  /** Pieces of work that are promised for the vault and not done. */
  pending: number
  /** What becomes of private data in what is stored with it. */
  redaction: RedactionPolicy | null
  /** How long it is kept, in days; null: for good. */
  retentionDays: number | null
  /** The vault may hold what is over by now: it is to be removed before anything is read. */
  hasExpired: boolean
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
  owner: boolean
  member: MemberColumns | null
  is_rotated: boolean
  epoch: number
  revision: string
  embeddings: string | null
  payment_method: string | null
  balance: string | null
  pending: number
  redaction: StoredRedactionPolicy | null
  retention_days: number | null
  has_over: boolean | null
  raw_units: number
  raw_tokens: string
  tier2_count: number
  tier2_importance: number
  tier2_tokens: string
}

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
    `select asked.n, k.vault, k.account, k.kind, k.rotated_at is not null as is_rotated,
            v.owner, v.epoch, v.revision, v.embeddings, v.pending,
            v.next_expiry <= clock_timestamp() as has_over,
            v.raw_units, v.raw_tokens, v.tier2_count, v.tier2_importance, v.tier2_tokens,
            a.payment_method, a.balance, a.retention_days,
            case when k.org is null then a.redaction
                 else coalesce((select redaction from orgs where id = k.org), a.redaction)
            end as redaction,
            case when k.kind = 'member' then (${memberScopeSql}) end as member
     from unnest($1::bytea[]) with ordinality asked(hash, n)
     join memory_keys k on k.hash = asked.hash
     join vaults v on v.id = k.vault
     join accounts a on a.id = k.account
     where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`,
    [hashes],
    'keys.find',
  )
  const found: (KeyRow | undefined)[] = hashes.map(() => undefined)
  for (const row of rows) found[row.n - 1] = toKeyRow(row)
  return found
}

function toKeyRow(row: KeyColumns): KeyRow {
  return {
    vault: row.vault,
    account: row.account,
    kind: row.kind,
    isOwnerVault: row.owner,
    memberScope: row.member && toMemberScope(row.member),
    isRotated: row.is_rotated,
    epoch: row.epoch,
    revision: Number(row.revision),
    embeddingModel: row.embeddings,
    paymentMethod: row.payment_method,
    balance: row.balance === null ? null : Number(row.balance),
    pending: row.pending,
    redaction: toActiveRedaction(row.redaction),
    retentionDays: row.retention_days,
    hasExpired: row.has_over ?? false,
    rawUnits: row.raw_units,
    rawTokens: Number(row.raw_tokens),
    tier2Count: row.tier2_count,
    tier2Importance: row.tier2_importance,
    tier2Tokens: Number(row.tier2_tokens),
  }
}

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

export type PreviousKey = { vault: string; account: string; name: string; expiresAt: Date }

/**
 * Lets a live key expire after so many seconds at the latest, since another takes its place; undefined
 * when it is not live any more, or another has taken its place already.
 */
export async function expireRotatedKey(
  tx: Transaction,
  hash: Buffer,
  seconds: number,
): Promise<PreviousKey | undefined> {
  const { rows } = await tx.query<PreviousKey>(
    `update memory_keys
     set expires_at = least(expires_at, now() + make_interval(secs => $2)), rotated_at = now()
     where hash = $1 and revoked_at is null and (expires_at is null or expires_at > now())
       and rotated_at is null
     returning vault, account, name, expires_at as "expiresAt"`,
    [hash, seconds],
  )
  return rows[0]
}

/** Whether another key has taken the place of this one, and nobody has revoked it. */
export async function isRotatedKey(query: Query, hash: Buffer): Promise<boolean> {
  const { rowCount } = await query(
    `select from memory_keys
     where hash = $1 and kind = 'vault' and rotated_at is not null and revoked_at is null`,
    [hash],
  )
  return rowCount > 0
}
