import {
  errorsMax,
  type ExportedLine,
  type LineError,
  type Placed,
} from '#shared/domain/file-lines.ts'
import { importedCandidates } from '#shared/vault/bulk/import.ts'
import { linesOf, type LineLimits } from '#shared/vault/bulk/lines.ts'
import { importAnswer } from '#shared/vault/bulk/outcome.ts'
import { planOf } from '#shared/vault/bulk/plan.ts'
import { overRemark, readLine, requireLines, type LineReader } from '#shared/vault/bulk/stage.ts'
import { isLineOver } from '#shared/vault/bulk/upload.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Lines are held against the vault this many at a time. */
const batchLines = 500

/**
 * What an import of this file would do now, without doing it.
 *
 * @throws Refusal as `stageFile` does.
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
) {
  const tally = { lines: 0, failed: 0, stored: 0, replaced: 0, skipped: 0 }
  const errors: LineError[] = []
  const said = new Set<string>()
  let batch: Placed<ExportedLine>[] = []
  const count = async (): Promise<void> => {
    const items = batch.map(line => importedCandidates(scope, line))
    batch = []
    for (const { as } of await planOf(backend, scope, items, file)) tally[counters[as]]++
  }

  for await (const { number, bytes } of linesOf(file.source, file.limits)) {
    tally.lines++
    const read = readLine(bytes, number, file.reader, said)
    if ('error' in read) {
      tally.failed++
      if (errors.length < errorsMax) errors.push(read)
      continue
    }
    if (isLineOver(read) && errors.length < errorsMax) errors.push(overRemark(read))
    const { vector: _, sources: __, ...line } = read as Placed<ExportedLine>
    batch.push(line)
    if (batch.length === batchLines) await count()
  }
  await count()
  requireLines(tally.lines)
  return importAnswer({ ...tally, errors, dryRun: true })
}

const counters = { new: 'stored', replace: 'replaced', skip: 'skipped' } as const
