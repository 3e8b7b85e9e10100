import type { BulkFileKind, LineError, BulkTally } from '#shared/domain/file-types.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import { recordDeferredBill } from '#shared/billing/deferred-bill.postgres.ts'
import { dropBulkFile } from '#shared/vault/bulk/files.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { finishOperation, reportProgress } from '#shared/operations/operation-rows.postgres.ts'

export type FileTally = BulkTally & {
  errors: LineError[]
  /** Tokens of memories that were stored or replaced. */
  tokens: number
  /** Chunks that were not stored because the operation was cancelled. */
  cut: number
}

type FinishedFile = { file: string; operation: string; vault: string; kind: BulkFileKind }

/**
 * Ends the operation of a file whose last chunk is settled: stores its outcome and its bill, and deletes
 * its lines.
 */
export async function finishFile(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  { file, operation, kind }: FinishedFile,
  tally: FileTally,
): Promise<void> {
  const { maskedKey: key, session } = await recordDeferredBill(tx, operation, tally.tokens)
  const { lines, failed, memories, stored, replaced, skipped, errors } = tally
  const isCancelled = tally.cut > 0
  const counts = {
    lines,
    failed,
    stored,
    skipped,
    ...(errors.length > 0 && { errors }),
    ...(isCancelled && { cancelled: true as const }),
  }
  const outcome: OperationOutcome =
    kind === 'upload'
      ? { kind, key, inSession: session !== null, memories, ...counts }
      : { kind, replaced, ...counts }
  if (isCancelled) await reportProgress(tx.query, operation, { done: lines })
  await finishOperation(tx, queue, operation, outcome, isCancelled ? 'cancelled' : 'done')
  await dropBulkFile(tx.query, file)
}
