import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { billLater } from '#shared/billing/deferred-bill.postgres.ts'
import { standingOf } from '#shared/vault/base/erasures.postgres.ts'
import {
  insertOperations,
  unbilled,
  type Accepted,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-lock.postgres.ts'

/** An erasure costs nothing until it is known what was removed. */
export type NewErasure = Omit<NewOperation, keyof typeof unbilled>

/**
 * Writes the operation of an erasure. The vault is held until the transaction ends.
 *
 * @returns what the vault was; null when the operation had been promised before: a request sent again
 *   must not erase what was stored since.
 */
export async function promiseErasure(
  tx: Transaction,
  erasure: NewErasure,
): Promise<Accepted | null> {
  await lockVault(tx, erasure.vault)
  if (await standingOf(tx.query, erasure.id)) return null
  const [accepted] = await insertOperations(tx, [{ ...erasure, ...unbilled }])
  await billLater(tx.query, erasure.id)
  return accepted!
}
