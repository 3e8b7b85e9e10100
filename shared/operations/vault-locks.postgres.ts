import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'

/**
 * Locks vaults until the transaction ends, and after them the accounts that a bill will be charged to.
 *
 * All transactions take their locks in one order: advisory locks, vaults, accounts with a balance, all other
 * rows; several of a kind in the order of their ids. The locks are a statement of their own: the next one
 * sees what their last holders have written. A statement that locks a row and then changes it looks
 * at the version of before it waited, and Postgres makes it wait there for a transaction that may
 * wait for it (22 deadlocks in 75 s under 16 clients on 6 vaults).
 */
export async function lockVaults(
  { query }: Transaction,
  vaults: readonly string[],
  payers: readonly string[] = [],
): Promise<void> {
  await query(
    `with vault as materialized (
       select id from vaults where id = any($1::uuid[]) order by id for no key update
     ), payer as materialized (
       select id from accounts where id = any($2::uuid[]) and balance is not null
       order by id for no key update
     )
     select (select count(*) from vault) as vaults, (select count(*) from payer) as payers`,
    [vaults, payers],
    'vaults.lock-all',
  )
}

/** A statement that locks as many takes about 0.1 s. */
const lockedMax = 5_000

/** Locks any number of vaults until the transaction ends, in the same order; see `lockVaults`. */
export async function lockManyVaults(tx: Transaction, vaults: readonly string[]): Promise<void> {
  const sorted = vaults.toSorted()
  for (let first = 0; first < sorted.length; first += lockedMax)
    await lockVaults(tx, sorted.slice(first, first + lockedMax))
}

/** Locks the vaults of operations until the transaction ends; see `lockVaults`. */
export async function lockVaultsOf(
  { query }: Transaction,
  operations: readonly string[],
): Promise<void> {
  await query(
    `select v.id from vaults v where v.id in (
       select o.vault from unnest($1::uuid[]) asked(id) join operations o on o.id = asked.id)
     order by v.id for no key update of v`,
    [padArray(operations)],
    'vaults.lock-of-operations',
  )
}
