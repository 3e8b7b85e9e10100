import type { BulkFileKind, LineError, BulkTally } from '#shared/domain/file-types.ts'
import { recordDeferredBill } from '#shared/billing/deferred-bill.postgres.ts'
import { dropBulkFile } from '#shared/vault/bulk/files.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { finishOperation } from '#shared/operations/operation-rows.postgres.ts'

export type FileTally = BulkTally & {
  errors: LineError[]
  /** Tokens of what was stored or replaced. */
  tokens: number
}

type FinishedFile = { file: string; operation: string; vault: string; kind: BulkFileKind }

/** Ends the operation of a file whose last chunk is settled: its answer, its bill, and its lines go. */
export async function finishFile(
  tx: Transaction,
  { file, operation, kind }: FinishedFile,
  tally: FileTally,
): Promise<void> {
  const bill = await recordDeferredBill(tx, operation, tally.tokens)
  const body =
    kind === 'upload'
      ? toUploadAnswer(operation, { ...bill, ...tally })
      : { ...toImportAnswer({ ...tally, dryRun: false }), operation_id: operation }
  await finishOperation(tx.query, operation, { status: 200, body })
  await dropBulkFile(tx.query, file)
}

const toUploadAnswer = (
  operation: string,
  tally: FileTally & { maskedKey: string; session: string | null },
) => {
  const { maskedKey, session, lines, failed, memories, stored, skipped, errors } = tally
  return {
    status: tallyStatus(tally),
    memoryKey: maskedKey,
    vault: session === null ? 'core' : 'session',
    stats: {
      inputItems: lines,
      memories,
      stored,
      skipped,
      failed,
      total: lines,
      processed: lines - failed,
    },
    ...(errors.length > 0 && { errors }),
    operation_id: operation,
    message: joinParts([
      describeCount(stored, 'memory', 'memories', 'stored'),
      skipped > 0 && `${formatCount(skipped)} already there`,
      failed > 0 && describeCount(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

/** What an import answers, or would: of a dry run nothing was done. */
export const toImportAnswer = (
  tally: Omit<FileTally, 'tokens' | 'memories'> & { dryRun: boolean },
) => {
  const { dryRun, stored, replaced, skipped, failed, errors } = tally
  return {
    dry_run: dryRun,
    status: tallyStatus(tally),
    imported: stored,
    replaced,
    skipped,
    failed,
    ...(errors.length > 0 && { errors }),
    message: joinParts([
      describeCount(stored, 'memory', 'memories', dryRun ? 'would be imported' : 'imported'),
      replaced > 0 && `${formatCount(replaced)} replaced`,
      skipped > 0 && `${formatCount(skipped)} already there`,
      failed > 0 && describeCount(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

function tallyStatus({ lines, failed }: Pick<BulkTally, 'lines' | 'failed'>) {
  if (failed === 0) return 'complete'
  return failed === lines ? 'failed' : 'partial'
}

const joinParts = (parts: (string | false)[]): string => parts.filter(Boolean).join(', ')

const describeCount = (count: number, one: string, many: string, what: string): string =>
  `${formatCount(count)} ${count === 1 ? one : many} ${what}`

const formatCount = (count: number): string => count.toLocaleString('en')
