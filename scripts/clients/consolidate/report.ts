import type { BatchResult, ConsolidationListener } from '#scripts/clients/consolidate/run.ts'
import type { Batch } from '#scripts/clients/consolidate/client.ts'

/** Prints each step as a line of text. */
export function createConsoleReporter(
  write: (line: string) => void,
  dryRun: boolean,
): ConsolidationListener {
  return {
    onCheckout({ tier, count, est_tokens: tokens, covers }) {
      write(
        `Tier ${tier}: ${formatMemoryCount(count)}, ${formatCount(tokens, 'token')}, ${formatDateRange(covers)}`,
      )
    },

    onBatchDone({ batch, output, commitAnswer, ms }) {
      const { entries, attempts } = output
      const again = attempts > 1 ? `, asked ${attempts} times` : ''
      const seconds = (ms / 1_000).toFixed(1)
      write(
        `  ${formatReflectionCount(entries.length)} of tier ${batch.tier + 1} in ${seconds} s${again}`,
      )
      if (dryRun) entries.forEach(entry => write(formatEntry(entry)))
      if (commitAnswer) write(`  still waiting: ${formatDebt(commitAnswer.reflection)}`)
    },

    onLeaseExpired({ batch_id: batch }) {
      write(`  batch ${batch} expired before it was committed; checking out again`)
    },

    onTierDone(tier) {
      write(`Tier ${tier}: no ${tier === 1 ? 'raw memories' : 'reflections'} are waiting`)
    },
  }
}

/** Describes the result in one sentence. */
export function formatSummary(results: readonly BatchResult[], dryRun: boolean): string {
  if (results.length === 0) return 'Nothing was waiting to be consolidated.'
  const sum = (figure: (result: BatchResult) => number): number =>
    results.reduce((total, result) => total + figure(result), 0)
  const written = formatReflectionCount(sum(({ output }) => output.entries.length))
  const read = formatCount(
    sum(({ output }) => output.inputTokens),
    'token',
  )
  const spent = `the model read ${read} and wrote ${numberFormat.format(
    sum(({ output }) => output.outputTokens),
  )}`
  if (dryRun) return `Dry run: ${written} written, none committed; ${spent}.`
  const batches = formatCount(results.length, 'batch', 'batches')
  return `${formatMemoryCount(sum(({ batch }) => batch.count))} became ${written} in ${batches}; ${spent}.`
}

/** Makes the result for `--json`. */
export const toJsonReport = (
  results: readonly BatchResult[],
  { model, dryRun }: { model: string; dryRun: boolean },
) => ({
  model,
  dry_run: dryRun,
  batches: results.map(({ batch, output, commitAnswer, ms }) => ({
    batch_id: batch.batch_id,
    tier: batch.tier,
    count: batch.count,
    est_tokens: batch.est_tokens,
    covers: batch.covers,
    entries: output.entries,
    tries: output.attempts,
    input_tokens: output.inputTokens,
    output_tokens: output.outputTokens,
    created: commitAnswer?.created ?? [],
    ms: Math.round(ms),
  })),
  reflection: results.at(-1)?.commitAnswer?.reflection ?? null,
})

const numberFormat = new Intl.NumberFormat('en')

const formatCount = (value: number, one: string, many = `${one}s`): string =>
  `${numberFormat.format(value)} ${value === 1 ? one : many}`

const formatMemoryCount = (value: number): string => formatCount(value, 'memory', 'memories')
const formatReflectionCount = (value: number): string => formatCount(value, 'reflection')

function formatDateRange(covers: Batch['covers']): string {
  const [from, to] = [covers.from.slice(0, 10), covers.to.slice(0, 10)]
  return from === to ? from : `${from} to ${to}`
}

const formatEntry = ({ text, importance }: BatchResult['output']['entries'][number]): string =>
  `  ${String(importance).padStart(2)}  ${text}`

function formatDebt({
  unconsolidated: { raw, tier2 },
}: NonNullable<BatchResult['commitAnswer']>['reflection']): string {
  const importance = numberFormat.format(tier2.importance)
  return `${formatCount(raw.est_tokens, 'raw token')}, ${formatReflectionCount(tier2.count)} of importance ${importance}`
}
