import {
  revokedKeyColumns,
  unexpiredCondition,
  type RevokedKey,
} from '#shared/access/revoked-key.ts'
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
 * `vault`: opens one vault and acts for its account. `member`: opens a member's private vault and
 * what they may see of the organization's; `user`: the private vault alone.
 */
export type MemoryKeyKind = 'vault' | 'member' | 'user'

/** All that a request needs to know of its key, the vault and the account. */
export type KeyRow = {
  vault: string
  account: string
  kind: MemoryKeyKind
  /** The vault was created with its account: its keys act for the account. */
  isOwnerVault: boolean
  /** Of a member key: what it may see of the shared memory. */
  memberScope: MemberScope | null
  /** Another key replaced it: it works until the end of its grace period. */
  isRotated: boolean
  epoch: number
  revision: number
  /** The embedding model whose space holds the vault; null: the default model's. */
  embeddingModel: string | null
  paymentMethod: string | null
  balance: number | null
  /** Operations of the vault that are accepted and not done. */
  pending: number
  /** How private data is handled in what the key stores; null: it is stored. */
  redaction: RedactionPolicy | null
  /** Retention in days; null: forever. */
  retentionDays: number | null
  /** The vault may hold expired memories: they are removed before anything is read. */
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
 * The key with this hash, its vault and its account, as they are now: the one read of every
 * request, so that a revocation, a deletion or a write in another process applies from the next
 * request on.
 *
 * @returns undefined when there is no such key, or it is revoked or expired.
 */
export async function findKey(query: Query, hash: Buffer): Promise<KeyRow | undefined> {
  return (await findKeys(query, [hash]))[0]
}

/** Reads several keys at once; answers are in the order of the hashes. */
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

/**
 * Revokes a key of an account; it is refused from the next request on. @returns the key, if it was
 * live.
 */
export async function revokeKey(
  query: Query,
  account: string,
  hash: Buffer,
): Promise<RevokedKey | undefined> {
  const { rows } = await query<RevokedKey>(
    `with revoked as (
       update memory_keys set revoked_at = now()
       where hash = $1 and account = $2 and revoked_at is null returning *
     )
     select ${revokedKeyColumns} from revoked where ${unexpiredCondition}`,
    [hash, account],
  )
  return rows[0]
}

export type PreviousKey = RevokedKey & {
  vault: string
  expiresAt: Date
  /** False when the key was to expire earlier anyway. */
  expiresSooner: boolean
  hasExpired: boolean
}

/**
 * Sets a live key to expire after this many seconds at the latest, since another key replaces it.
 *
 * @returns undefined when the key is not live any more, or was replaced before.
 */
export async function expireRotatedKey(
  tx: Transaction,
  hash: Buffer,
  seconds: number,
): Promise<PreviousKey | undefined> {
  const { rows } = await tx.query<PreviousKey>(
    `with live as (
       select hash, expires_at as former_expiry from memory_keys
       where hash = $1 and revoked_at is null and ${unexpiredCondition} and rotated_at is null
       for no key update
     ), rotated as (
       update memory_keys k
       set expires_at = least(expires_at, now() + make_interval(secs => $2)), rotated_at = now()
       from live where k.hash = live.hash returning k.*, live.former_expiry
     )
     select ${revokedKeyColumns}, vault, expires_at as "expiresAt",
            expires_at is distinct from former_expiry as "expiresSooner",
            expires_at <= now() as "hasExpired"
     from rotated`,
    [hash, seconds],
  )
  return rows[0]
}

/** Whether another key replaced this one, and it was not revoked. */
export async function isRotatedKey(query: Query, hash: Buffer): Promise<boolean> {
  const { rowCount } = await query(
    `select from memory_keys
     where hash = $1 and kind = 'vault' and rotated_at is not null and revoked_at is null`,
    [hash],
  )
  return rowCount > 0
}

/** The masked form of a key in any state; empty when there is none. */
export async function findMaskedKey(query: Query, hash: Buffer): Promise<string> {
  const { rows } = await query<{ masked: string }>(
    'select masked from memory_keys where hash = $1',
    [hash],
  )
  return rows[0]?.masked ?? ''
}
