import { mintId } from '#shared/core/ids.ts'
import {
  revokedKeyColumns,
  unexpiredCondition,
  type RevokedKey,
} from '#shared/access/revoked-key.ts'
import {
  keyRowColumns,
  toKeyRow,
  type KeyColumns,
  type KeyRow,
  type MemoryKeyKind,
} from '#shared/access/key-row.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'

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
    `select asked.n, ${keyRowColumns}
     from unnest($1::bytea[]) with ordinality asked(hash, n)
     join memory_keys k on k.hash = asked.hash
     join vaults v on v.id = k.vault
     join accounts a on a.id = k.account
     where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`,
    [padArray(hashes)],
    'keys.find',
  )
  const keyRows: (KeyRow | undefined)[] = hashes.map(() => undefined)
  for (const row of rows) keyRows[row.n - 1] = toKeyRow(row)
  return keyRows
}

export type NewKey = {
  /** Generated when missing. */
  id?: string
  hash: Buffer
  vault: string
  account: string
  kind: MemoryKeyKind
  name: string
  masked: string
  expiresAt: Date | null
  /** Hash of the key whose rate limits it shares; limits of its own, when missing. */
  limitedAs?: Buffer | null
  /** The raw key, sealed to its id; null when it is shown only once. */
  sealed?: string | null
}

/** @returns when it was created. */
export async function insertKey(tx: Transaction, key: NewKey): Promise<Date> {
  const { rows } = await tx.query<{ created_at: Date }>(
    `insert into memory_keys (hash, vault, account, kind, name, masked, expires_at, limited_as, id,
                              sealed)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning created_at`,
    [
      key.hash,
      key.vault,
      key.account,
      key.kind,
      key.name,
      key.masked,
      key.expiresAt,
      key.limitedAs ?? null,
      key.id ?? mintId(),
      key.sealed ?? null,
    ],
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
  /** Hash of the key whose rate limits it shares: its own, or that of an earlier one. */
  limitedAs: Buffer
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
     select ${revokedKeyColumns}, expires_at as "expiresAt",
            coalesce(limited_as, hash) as "limitedAs",
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
