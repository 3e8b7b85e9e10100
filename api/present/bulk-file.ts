import type { LineError } from '#shared/domain/file-types.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'

type UploadOutcome = Extract<OperationOutcome, { kind: 'upload' }>

/** What became of an uploaded file. */
export function presentUpload(
  { key, inSession, memories, cancelled, ...tally }: UploadOutcome,
  id: { operation_id: string },
) {
  const { lines, failed, stored, skipped, errors } = tally
  return {
    status: tallyStatus(tally),
    memoryKey: key,
    vault: inSession ? 'session' : 'core',
    stats: {
      inputItems: lines,
      memories,
      stored,
      skipped,
      failed,
      total: lines,
      processed: lines - failed,
    },
    ...(errors && errors.length > 0 && { errors }),
    ...id,
    message: joinParts([
      cancelled && 'cancelled',
      describeCount(stored, 'memory', 'memories', 'stored'),
      skipped > 0 && `${formatCount(skipped)} already there`,
      failed > 0 && describeCount(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

type ImportTally = {
  lines: number
  failed: number
  stored: number
  replaced: number
  skipped: number
  errors?: LineError[]
  cancelled?: true
}

/** What became of an imported file, or with `dryRun` what would become of it. */
export function presentImport(
  tally: ImportTally,
  { dryRun, id }: { dryRun: boolean; id?: { operation_id: string } },
) {
  const { failed, stored, replaced, skipped, errors } = tally
  return {
    dry_run: dryRun,
    status: tallyStatus(tally),
    imported: stored,
    replaced,
    skipped,
    failed,
    ...(errors && errors.length > 0 && { errors }),
    ...id,
    message: joinParts([
      tally.cancelled && 'cancelled',
      describeCount(stored, 'memory', 'memories', dryRun ? 'would be imported' : 'imported'),
      replaced > 0 && `${formatCount(replaced)} replaced`,
      skipped > 0 && `${formatCount(skipped)} already there`,
      failed > 0 && describeCount(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

function tallyStatus({ lines, failed }: { lines: number; failed: number }) {
  if (failed === 0) return 'complete'
  return failed === lines ? 'failed' : 'partial'
}

const joinParts = (parts: (string | false | undefined)[]): string =>
  parts.filter(Boolean).join(', ')

const describeCount = (count: number, one: string, many: string, what: string): string =>
  `${formatCount(count)} ${count === 1 ? one : many} ${what}`

const formatCount = (count: number): string => count.toLocaleString('en')
