import type { Query } from '#shared/storage/postgres/connect.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'

/** How far the memories of an account have been brought in line with its retention. */
export type RetentionRun = {
  operation: string
  account: string
  /** Days, as it was decided for this operation; and as the account has it now. */
  days: number | null
  daysNow: number | null
  step: number
  /** The vault of the last page, and its last memory; null at the beginning of the next vault. */
  vault: string | null
  after: MemoryPosition | null
  looked: number
  changed: number
}

/** How long an account keeps what it remembers, in days; null: for good. */
export async function findAccountRetention(query: Query, account: string): Promise<number | null> {
  const { rows } = await query<{ days: number | null }>(
    'select retention_days as days from accounts where id = $1',
    [account],
    'retentions.account',
  )
  return rows[0]?.days ?? null
}

/** Decides it, from the next request on. @returns false when it was decided so before. */
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

/** A vault of an account and a key to it, its own before those of members; undefined without any. */
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

/** Keeps what is to be done, in the transaction that promises it. */
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

/** An operation that is at this step; undefined when it has come further, or has ended. */
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

/** The vaults of an account and of its members, not what organizations share. */
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

/** The vault to look at next: the one in which the last page was, or the one after it; or none. */
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
 * Marks a step as done and writes down where the next one begins.
 *
 * @returns false when it was done before: what it did must not count twice.
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

/** Forgets what has ended. */
export async function dropRetention(query: Query, operation: string): Promise<void> {
  await query('delete from retentions where operation = $1', [operation], 'retentions.drop')
}
