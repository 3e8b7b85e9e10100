import type { Stores } from '#shared/storage/stores.ts'
import type { EditJob } from '#shared/domain/job-payloads.ts'
import {
  takeVaultAdvisoryLock,
  lockVault,
  changeVault,
} from '#shared/vault/base/vaults.postgres.ts'
import { findEditableMemory, type EditableMemory } from '#shared/vault/edit/edits.mongo.ts'
import { isUntold } from '#shared/domain/feedback.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'

/** The advisory lock under which a vault's texts are compared with new ones. */
export const contentsLock = 'contents'

/** An edit older than this is finalized, by its request or its job; its bill may be archived. */
const finalizedWithinMs = 24 * 3600 * 1000

/** Finalizes an edit that was written and not finalized yet; otherwise does nothing. */
export async function finalizeWrittenEdit(
  { postgres, mongo }: Stores,
  job: EditJob,
): Promise<void> {
  if (await isEditFinalized(postgres, job.operation)) return
  await postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, job.vault, contentsLock)
    const memory = await findEditableMemory(mongo, job, job.id)
    if (memory?.edited?.operation !== job.operation) return
    await finalizeInTransaction(tx, job, memory, {
      tokens: memory.tokens,
      before: memory.edited.before,
    })
  })
}

/** The tokens the debt counts a memory for: its own, unless its last edit was not finalized. */
export async function tokensBeforeEdit(
  tx: Transaction,
  { tokens, edited }: EditableMemory,
): Promise<number> {
  if (!edited || Date.now() - edited.at > finalizedWithinMs) return tokens
  return (await isEditFinalized(tx, edited.operation)) ? tokens : edited.before
}

/**
 * Bills a written edit, moves the debt and makes the new text visible, once. The caller holds the lock on the
 * vault's contents. In a vault that was cleared since only the bill is written.
 */
export async function finalizeInTransaction(
  tx: Transaction,
  { operation, vault, epoch, account, keyHash }: EditJob,
  memory: EditableMemory,
  { tokens, before }: { tokens: number; before: number },
): Promise<void> {
  if (await isEditFinalized(tx, operation)) return
  const { id, session } = memory
  const vaultState = await lockVault(tx, vault)
  await recordBill(tx, {
    id: operation,
    account,
    vault,
    keyHash: Buffer.from(keyHash, 'hex'),
    kind: 'edit',
    session,
    memoryTokens: tokens,
  })
  if (vaultState.epoch !== epoch) return
  // Removed and stored: an index of a space the memory has left drops it, the others read it again.
  const change = { session, removed: [id], stored: [id] }
  await changeVault(tx, vault, [change], debtChangeOf(memory, tokens - before))
}

/** Only memories that are told and no reflection covers count, and raw ones only in the core vault. */
function debtChangeOf(memory: EditableMemory, tokens: number): DebtChange {
  const { tier, session, consolidated } = memory
  if (consolidated || isUntold(memory) || session !== null || tier === 3) return {}
  return tier === 1 ? { rawTokens: tokens } : { tier2Tokens: tokens }
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
