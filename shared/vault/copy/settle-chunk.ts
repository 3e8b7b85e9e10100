import {
  type PendingCopyChunk,
  type CopyChunkResult,
  lockCopy,
  finalizeCopyChunk,
  tallyCopy,
  dropCopy,
} from '#shared/vault/copy/copies.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { reportProgress, finishOperation } from '#shared/operations/operation-rows.postgres.ts'
import { copyOutcome } from '#shared/vault/copy/outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'

export function assertEpoch(copy: PendingCopyChunk['copy'], epoch: number): void {
  if (epoch === copy.destinationEpoch) return
  throw new Refusal('conflict', 'The destination was cleared meanwhile')
}

export async function recordChunkResult(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  { copy, chunk }: PendingCopyChunk,
  stored: readonly string[],
  result: CopyChunkResult,
): Promise<void> {
  const { operation, source, destination } = copy
  const locked = await lockCopy(tx.query, copy)
  if (!locked) return
  if (stored.length > 0) assertEpoch(copy, locked.destinationEpoch)
  if (!(await finalizeCopyChunk(tx.query, operation, chunk.n, result))) return
  if (stored.length > 0) {
    const debt = { rawUnits: result.copied, rawTokens: result.tokens }
    await changeVault(tx, destination, [{ session: null, stored }], debt, queue)
  }

  const tally = await tallyCopy(tx.query, operation)
  await reportProgress(tx.query, operation, { done: tally.settled })
  if (tally.settled < tally.chunks) return
  const { account, keyHash, queries } = locked
  const kind = queries === null ? 'transfer' : 'graft'
  await finishOperation(tx, queue, operation, copyOutcome({ ...copy, queries }, tally))
  const bill = { id: operation, account, vault: source, keyHash, kind, memoryTokens: tally.tokens }
  if (bill.memoryTokens > 0) await recordBill(tx, bill)
  await dropCopy(tx.query, operation)
}
