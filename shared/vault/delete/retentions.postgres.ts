import type { Query } from '#shared/storage/postgres/connect.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'

/** The progress of applying a retention to the memories of an account. */
export type RetentionRun = {
  operation: string
  account: string
  /** The retention of this operation and the current one of the account, in days; null: unlimited. */
  days: number | null
  daysNow: number | null
  step: number
  /** The vault of the last page, and its last memory; null at the beginning of the next vault. */
  vault: string | null
  after: MemoryPosition | null
  looked: number
  changed: number
}

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

/** Inserts the work of an operation, in the transaction that accepts it. */
export async function insertRetention(
  query: Query,
  { operation, account, days }: Pick<RetentionRun, 'operation' | 'account' | 'days'>,
): Promise<void> {
  await query(
    'insert into retentions (operation, account, days) values ($1, $2, $3)',
    [operation, account, days],
    'retentions.insert',
  )
}

/** An operation that is at this step; undefined when it is further on or has ended. */
export async function findRetention(
  query: Query,
  operation: string,
  step: number,
): Promise<RetentionRun | undefined> {
  const { rows } = await query<RetentionRun>(
    `select r.operation, r.account, r.days, a.retention_days as "daysNow", r.step, r.vault, r.after,
            r.looked, r.changed
     from retentions r
     join operations o on o.id = r.operation and o.state in ('accepted', 'running', 'failed')
     join accounts a on a.id = r.account
     where r.operation = $1 and r.step = $2`,
    [operation, step],
    'retentions.find',
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
  { account, vault, after }: Pick<RetentionRun, 'account' | 'vault' | 'after'>,
): Promise<VaultUnderRetention | undefined> {
  const { rows } = await query<VaultUnderRetention>(
    `select v.id as vault, v.epoch from vaults v
     where ${underRetentionCondition} and ($2::uuid is null or v.id > $2 or $3 and v.id = $2) order by v.id limit 1`,
    [account, vault, after !== null],
    'retentions.next-vault',
  )
  return rows[0]
}

/**
 * Marks a step as done and stores where the next one begins.
 *
 * @returns false when it was done before: its effects must not count twice.
 */
export async function advanceRetention(
  query: Query,
  { operation, step }: Pick<RetentionRun, 'operation' | 'step'>,
  next: Pick<RetentionRun, 'vault' | 'after' | 'looked' | 'changed'>,
): Promise<boolean> {
  const { rowCount } = await query(
    `update retentions set step = step + 1, vault = $3, after = $4, looked = $5, changed = $6
     where operation = $1 and step = $2`,
    [
      operation,
      step,
      next.vault,
      next.after && JSON.stringify(next.after),
      next.looked,
      next.changed,
    ],
    'retentions.advance',
  )
  return rowCount === 1
}

/** Deletes the work of an operation that has ended. */
export async function dropRetention(query: Query, operation: string): Promise<void> {
  await query('delete from retentions where operation = $1', [operation], 'retentions.drop')
}
