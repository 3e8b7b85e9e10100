import { recordBill, type UsageEvent } from '#shared/billing/bill.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { lockVault } from '#shared/vault/base/vault-state.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'

export type EditEffects = {
  /** Its id is the operation's. */
  bill: UsageEvent
  /** The vault's epoch when it was edited. */
  epoch: number
  /** The memory, and the session it is in. */
  id: string
  session: string | null
  debt: DebtChange
}

/** Whether an edit is finalized: it has a bill. */
export async function isEditFinalized({ query }: Transaction, operation: string): Promise<boolean> {
  const { rows } = await query(
    'select 1 from usage_events where id = $1',
    [operation],
    'edits.settled',
  )
  return rows.length === 1
}

/**
 * Bills an edit, moves the debt and makes the new text visible, once: a second run finds the first one's
 * bill and does nothing. The caller holds the lock on the vault's contents. In a vault that was cleared
 * since only the bill is written.
 */
export async function finalizeEdit(
  tx: Transaction,
  { bill, epoch, id, session, debt }: EditEffects,
): Promise<void> {
  if (await isEditFinalized(tx, bill.id)) return
  const vaultState = await lockVault(tx, bill.vault)
  await recordBill(tx, bill)
  if (vaultState.epoch !== epoch) return
  // Removed and stored: an index of a space the memory has left drops it, the others read it again.
  await changeVault(tx, bill.vault, [{ session, removed: [id], stored: [id] }], debt)
}
