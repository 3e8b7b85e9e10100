import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { deferBilling } from '#shared/billing/deferred-bill.postgres.ts'
import { findOperationStatus } from '#shared/vault/base/erasures.postgres.ts'
import {
  insertOperations,
  zeroUsage,
  type AcceptedOperation,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-state.postgres.ts'

/** An erasure costs nothing until it is known what was removed. */
export type NewErasure = Omit<NewOperation, keyof typeof zeroUsage>

/**
 * Writes the operation of an erasure. The vault is held until the transaction ends.
 *
 * @returns what the vault was; null when the operation had been promised before: a request sent again
 *   must not erase what was stored since.
 */
export async function acceptErasure(
  tx: Transaction,
  erasure: NewErasure,
): Promise<AcceptedOperation | null> {
  await lockVault(tx, erasure.vault)
  if (await findOperationStatus(tx.query, erasure.id)) return null
  const [accepted] = await insertOperations(tx, [{ ...erasure, ...zeroUsage }])
  await deferBilling(tx.query, erasure.id)
  return accepted!
}
