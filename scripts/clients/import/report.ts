import type { Format } from '#api/import/formats/format.ts'
import type { Survey } from '#api/import/survey.ts'
import { formatCounts, type UploadTotals } from '#api/import/send/progress.ts'
import type { Refusal } from '#shared/core/errors.ts'

/** The end of an import. */
export type ImportResult = {
  format: Format
  survey: Survey
  /** Undefined for a dry run. */
  totals: UploadTotals | undefined
  stopped: Refusal | null
}

/** Describes what an export holds, and what cannot be imported. */
export function formatSurvey(format: Format, survey: Survey): string {
  const { memories, conversations, undated, oldest, newest, losses } = survey
  const span = oldest && newest ? ` from ${oldest.slice(0, 10)} to ${newest.slice(0, 10)}` : ''
  const count = (number: number): string => number.toLocaleString('en')
  const of =
    conversations > 0
      ? ` of ${count(conversations)} conversation${conversations === 1 ? '' : 's'}`
      : ''
  return [
    `${format.product}: ${count(memories)} ${memories === 1 ? 'memory' : 'memories'}${of}${span}`,
    undated > 0 && `without a time, so with that of the import: ${count(undated)}`,
    ...losses.map(({ what, count: times }) => `left out: ${what}: ${count(times)}`),
    `never carried over from ${format.product}: ${format.missing}`,
  ]
    .filter(Boolean)
    .map(line => `${line as string}\n`)
    .join('')
}

const statusOf = ({ totals, stopped }: ImportResult): string => {
  if (stopped) return 'stopped'
  if (!totals) return 'dry run'
  return totals.failed > 0 ? 'partial' : 'complete'
}

/** Describes the result of an import. */
export function formatResult(result: ImportResult): string {
  const { totals } = result
  if (!totals) return `${statusOf(result)}: nothing was sent\n`
  const errors = totals.errors.map(({ line, error }) => `memory ${line}: ${error}\n`)
  return `${errors.join('')}${statusOf(result)}: ${formatCounts(totals, 'memories')}\n`
}

export function toJsonReport(result: ImportResult): object {
  const { format, survey, totals, stopped } = result
  return {
    status: statusOf(result).replace(' ', '_'),
    product: format.product,
    memories: survey.memories,
    conversations: survey.conversations,
    undated: survey.undated,
    oldest: survey.oldest ?? null,
    newest: survey.newest ?? null,
    left_out: survey.losses,
    ...totals,
    ...(stopped && { error: stopped.message, ...(stopped.hint && { hint: stopped.hint }) }),
  }
}

export function exitCodeOf({ totals, stopped }: ImportResult): number {
  if (stopped) return 3
  return totals && totals.failed > 0 ? 1 : 0
}
