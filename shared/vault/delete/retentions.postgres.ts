import type { OperationStep } from '#shared/operations/operation-steps.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'

/** The retention that was decided, in days; null: unlimited. When the account decides otherwise, this one ends. */
export type RetentionRequest = { days: number | null }

/** Where the page of a step begins. */
export type RetentionInput = {
  /** The vault of the last page, and its last memory; null at the beginning of the next vault. */
  lastVault: string | null
  after: MemoryPosition | null
}

export type RetentionStep = OperationStep<RetentionRequest, RetentionInput, null>

/** The retention of an account in days; null: unlimited. */
export async function findAccountRetention(query: Query, account: string): Promise<number | null> {
  const { rows } = await query<{ days: number | null }>(
    'select retention_days as days from accounts where id = $1',
    [account],
    'retentions.account',
  )
  return rows[0]?.days ?? null
}

/** Sets the retention, from the next request on. @returns false when it is unchanged. */
export async function putAccountRetention(
  query: Query,
  account: string,
  days: number | null,
): Promise<boolean> {
  const { rowCount } = await query(
    `update accounts set retention_days = $2 where id = $1 and retention_days is distinct from $2`,
    [account, days],
    'retentions.put',
  )
  return rowCount === 1
}

/** A vault of an account and a key of it, its own vaults before those of members; undefined without a key. */
export async function findAnyKey(
  query: Query,
  account: string,
): Promise<{ vault: string; keyHash: Buffer } | undefined> {
  const { rows } = await query<{ vault: string; keyHash: Buffer }>(
    `select vault, hash as "keyHash" from memory_keys where account = $1
     order by kind <> 'vault', revoked_at is not null, created_at limit 1`,
    [account],
    'retentions.key',
  )
  return rows[0]
}

export type VaultUnderRetention = { vault: string; epoch: number }

const underRetentionCondition = `v.account = $1 and not exists (select from orgs o where o.vault = v.id)`

/** The vaults of an account and of its members, without shared vaults of organizations. */
export async function vaultsUnderRetention(
  query: Query,
  account: string,
): Promise<VaultUnderRetention[]> {
  const { rows } = await query<VaultUnderRetention>(
    `select v.id as vault, v.epoch from vaults v where ${underRetentionCondition}`,
    [account],
    'retentions.vaults',
  )
  return rows
}

/** The vault of the next page: that of the last page while it has more, or the one after it. */
export async function nextVaultUnderRetention(
  query: Query,
  { account, lastVault, after }: RetentionStep,
): Promise<VaultUnderRetention | undefined> {
  const { rows } = await query<VaultUnderRetention>(
    `select v.id as vault, v.epoch from vaults v
     where ${underRetentionCondition} and ($2::uuid is null or v.id > $2 or $3 and v.id = $2) order by v.id limit 1`,
    [account, lastVault, after !== null],
    'retentions.next-vault',
  )
  return rows[0]
}
