import {
  type CopyChunk,
  type CopyChunkResult,
  type PendingCopyChunk,
  findCopyChunk,
  lockCopy,
  finalizeCopyChunk,
  tallyCopy,
  dropCopy,
} from '#shared/vault/copy/copies.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { failureReasonOf } from '#shared/domain/operation-outcome.ts'
import type { CopyJob } from '#shared/domain/job-payloads.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { reportProgress, finishOperation } from '#shared/operations/operation-rows.postgres.ts'
import { copyOutcome } from '#shared/vault/copy/outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'

export function assertEpoch(copy: PendingCopyChunk['copy'], epoch: number): void {
  if (epoch === copy.destinationEpoch) return
  throw new Refusal('conflict', 'The destination was cleared meanwhile')
}

/** The result of a chunk of which nothing is left to copy. */
export const nothingCopied = ({ ids }: CopyChunk): CopyChunkResult => ({
  copied: 0,
  skipped: ids.length,
  failed: 0,
  tokens: 0,
  failure: null,
})

/** Settles a chunk with its result, and what it changed in the destination; the last one ends the operation. */
export async function recordChunkResult(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  { copy, chunk }: PendingCopyChunk,
  { stored = [], removed = [] }: { stored?: readonly string[]; removed?: readonly string[] },
  result: CopyChunkResult,
): Promise<void> {
  const { operation, source, destination } = copy
  const locked = await lockCopy(tx.query, copy)
  if (!locked) return
  if (stored.length > 0) assertEpoch(copy, locked.destinationEpoch)
  if (!(await finalizeCopyChunk(tx.query, operation, chunk.n, result))) return
  if (stored.length + removed.length > 0) {
    const debt = { rawUnits: result.copied, rawTokens: result.tokens }
    await changeVault(tx, destination, [{ session: null, stored, removed }], debt, queue)
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

/** Settles a chunk as failed: the others continue, and the outcome of the copy names its error. */
export async function failChunk(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { operation, n }: CopyJob,
  error: unknown,
): Promise<void> {
  const waiting = await findCopyChunk(postgres.query, operation, n)
  if (!waiting) return
  const { first, ids } = waiting.chunk
  const reason = failureReasonOf(error)
  const message = error instanceof Refusal ? error.message : 'An unexpected failure'
  const result = {
    copied: 0,
    skipped: 0,
    failed: ids.length,
    tokens: 0,
    failure: { reason, error: `Memories ${first + 1} to ${first + ids.length}: ${message}` },
  }
  await postgres.transaction(tx => recordChunkResult(tx, queue, waiting, {}, result))
}
