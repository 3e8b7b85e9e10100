import { createHash } from 'node:crypto'
import { guessFormat } from '#api/import/formats.ts'
import { newState, sumTotals } from '#api/import/send/progress.ts'
import { uploadClient } from '#api/import/send/upload-part.ts'
import { listFilesAt } from '#scripts/clients/import/export-files.ts'
import { importDocuments } from '#scripts/clients/import/documents.ts'
import { formats } from '#scripts/clients/import/formats.ts'
import { documents, readOptions, type ImportOptions } from '#scripts/clients/import/options.ts'
import {
  exitCodeOf,
  formatResult,
  formatSurvey,
  toJsonReport,
  type ImportResult,
} from '#scripts/clients/import/report.ts'
import {
  lineBytes,
  openExport,
  surveyExport,
  type LineSet,
  type OpenExport,
} from '#api/import/survey.ts'
import { describeVault } from '#scripts/service-connection.ts'
import { sendAll } from '#scripts/clients/upload/send-all.ts'
import { readState } from '#scripts/clients/upload/state.ts'
import { Refusal } from '#shared/core/errors.ts'

process.exitCode = await main(readOptions())

/** @returns the exit code. */
async function main(options: ImportOptions): Promise<number> {
  try {
    const { from, path } = options
    if (from === documents) return await importDocuments(options)
    const source = openExport(formats[from]!, await listFilesAt(path), path)
    const digests = { import: createHash('sha256'), upload: createHash('sha256') }
    const survey = await surveyExport(source, {
      hintFor,
      onLine: ({ kind, text }) => digests[kind].update(text),
    })
    if (!options.json) process.stdout.write(formatSurvey(source.format, survey))
    const end = { format: source.format, survey }
    if (options.dryRun) return report(options, { ...end, totals: undefined, stopped: null })
    const sets = survey.sets.map(set => {
      const digest = digests[set.kind].digest('base64url')
      return openSet(options, source, { ...set, digest })
    })
    const finish = (stopped: Refusal | null): number => {
      const totals = sumTotals(sets.map(({ lines }) => lines.state.totals))
      return report(options, { ...end, totals, stopped })
    }
    return finish(await sendAll(sets, ['memory', 'memories'], finish))
  } catch (error) {
    if (!(error instanceof Refusal) && !(error as NodeJS.ErrnoException).code) throw error
    const { message, hint } = error as Refusal
    process.stderr.write(`${message}\n${hint ? `${hint}\n` : ''}`)
    return 2
  }
}

function hintFor(stranger: unknown): string | undefined {
  const guess = guessFormat(stranger, formats)
  return guess && `It looks like an export of ${formats[guess]!.product}: --from ${guess}`
}

/** Opens the lines of a set where an earlier run of the same export for the same vault has stopped. */
function openSet(options: ImportOptions, source: OpenExport, set: LineSet & { digest: string }) {
  const { path, baseUrl, session, embeddings, onConflict, fresh } = options
  const { kind, bytes: size } = set
  const vault = describeVault(options)
  const client = uploadClient(baseUrl, options.key, options.user)
  const of = JSON.stringify({ ...set, baseUrl, vault, session, embeddings, onConflict })
  const suffix = kind === 'upload' ? 'import-state' : 'restore-state'
  const statePath = `${path.replace(/[/\\]$/, '')}.${suffix}.json`
  const state = (fresh ? undefined : readState(statePath, of)) ?? newState(of)
  return {
    // Restored memories have sessions of their own.
    target: { ...options, client, kind, session: kind === 'upload' ? session : undefined },
    lines: { source: lineBytes(source, kind, state.offset), state, size, statePath },
  }
}

/** Prints the result. @returns the exit code. */
function report({ json }: ImportOptions, result: ImportResult): number {
  const { stopped } = result
  if (json) process.stdout.write(`${JSON.stringify(toJsonReport(result))}\n`)
  else {
    process.stdout.write(formatResult(result))
    if (stopped) {
      const hint = stopped.hint ? `${stopped.hint}\n` : ''
      process.stderr.write(`${stopped.message}\n${hint}Run it again to continue.\n`)
    }
  }
  return exitCodeOf(result)
}
