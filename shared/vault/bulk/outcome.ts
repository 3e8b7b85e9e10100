import type { FileKind, LineError, Tally } from '#shared/domain/file-lines.ts'
import { recordLateBill } from '#shared/billing/deferred-bill.postgres.ts'
import { dropFile } from '#shared/vault/bulk/files.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { finishOperation } from '#shared/operations/operation-rows.postgres.ts'

export type FileTally = Tally & {
  errors: LineError[]
  /** Tokens of what was stored or replaced. */
  tokens: number
}

type EndedFile = { file: string; operation: string; vault: string; kind: FileKind }

/** Ends the operation of a file whose last chunk is settled: its answer, its bill, and its lines go. */
export async function endFile(
  tx: Transaction,
  { file, operation, kind }: EndedFile,
  tally: FileTally,
): Promise<void> {
  const bill = await recordLateBill(tx, operation, tally.tokens)
  const body =
    kind === 'upload'
      ? uploadAnswer(operation, { ...bill, ...tally })
      : { ...importAnswer({ ...tally, dryRun: false }), operation_id: operation }
  await finishOperation(tx.query, operation, { status: 200, body })
  await dropFile(tx.query, file)
}

const uploadAnswer = (
  operation: string,
  tally: FileTally & { maskedKey: string; session: string | null },
) => {
  const { maskedKey, session, lines, failed, memories, stored, skipped, errors } = tally
  return {
    status: statusOf(tally),
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
    message: sentenceOf([
      counted(stored, 'memory', 'memories', 'stored'),
      skipped > 0 && `${number(skipped)} already there`,
      failed > 0 && counted(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

/** What an import answers, or would: of a dry run nothing was done. */
export const importAnswer = (
  tally: Omit<FileTally, 'tokens' | 'memories'> & { dryRun: boolean },
) => {
  const { dryRun, stored, replaced, skipped, failed, errors } = tally
  return {
    dry_run: dryRun,
    status: statusOf(tally),
    imported: stored,
    replaced,
    skipped,
    failed,
    ...(errors.length > 0 && { errors }),
    message: sentenceOf([
      counted(stored, 'memory', 'memories', dryRun ? 'would be imported' : 'imported'),
      replaced > 0 && `${number(replaced)} replaced`,
      skipped > 0 && `${number(skipped)} already there`,
      failed > 0 && counted(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

function statusOf({ lines, failed }: Pick<Tally, 'lines' | 'failed'>) {
  if (failed === 0) return 'complete'
  return failed === lines ? 'failed' : 'partial'
}

const sentenceOf = (parts: (string | false)[]): string => parts.filter(Boolean).join(', ')

const counted = (count: number, one: string, many: string, what: string): string =>
  `${number(count)} ${count === 1 ? one : many} ${what}`

const number = (count: number): string => count.toLocaleString('en')
