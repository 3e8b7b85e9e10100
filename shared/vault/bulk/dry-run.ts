import {
  reportedErrorsMax,
  type BulkTally,
  type ExportedLine,
  type LineError,
  type NumberedLine,
} from '#shared/domain/file-types.ts'
import { importIdCandidates } from '#shared/vault/bulk/import-lines.ts'
import { lineTooLong, splitLines, type LineLimits } from '#shared/vault/bulk/split-lines.ts'
import { planItems } from '#shared/vault/bulk/plan-items.ts'
import {
  expiredRemark,
  parseLine,
  requireLines,
  type LineReader,
} from '#shared/vault/bulk/stage-file.ts'
import { isLineExpired } from '#shared/vault/bulk/upload-lines.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Lines that are compared with the vault at a time. */
const batchLines = 500

/**
 * Counts what an import of this file would do. Stores nothing.
 *
 * @throws Refusal as `stageFile`.
 */
export async function dryRunImport(
  backend: Stores,
  scope: VaultScope,
  file: {
    source: AsyncIterable<Uint8Array>
    limits: LineLimits
    reader: LineReader
    replaces: boolean
  },
): Promise<Omit<BulkTally, 'memories'> & { errors: LineError[] }> {
  const tally = { lines: 0, failed: 0, stored: 0, replaced: 0, skipped: 0 }
  const errors: LineError[] = []
  const seenKeys = new Set<string>()
  let batch: NumberedLine<ExportedLine>[] = []
  const planBatch = async (): Promise<void> => {
    const items = batch.map(line => importIdCandidates(scope, line))
    batch = []
    for (const { as } of await planItems(backend, scope, items, file)) tally[tallyFields[as]]++
  }

  for await (const { number, bytes, isTooLong } of splitLines(file.source, file.limits)) {
    tally.lines++
    const read = isTooLong
      ? { line: number, error: lineTooLong(file.limits) }
      : parseLine(bytes, number, file.reader, seenKeys)
    if ('error' in read) {
      tally.failed++
      if (errors.length < reportedErrorsMax) errors.push(read)
      continue
    }
    if (isLineExpired(read) && errors.length < reportedErrorsMax) errors.push(expiredRemark(read))
    const { vector: _, sources: __, ...line } = read as NumberedLine<ExportedLine>
    batch.push(line)
    if (batch.length === batchLines) await planBatch()
  }
  await planBatch()
  requireLines(tally.lines)
  return { ...tally, errors }
}

const tallyFields = { new: 'stored', replace: 'replaced', skip: 'skipped' } as const
