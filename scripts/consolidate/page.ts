import type { Done, Listener } from '#scripts/consolidate/run.ts'
import type { Batch } from '#scripts/consolidate/vault.ts'

/** Tells a person what happens, line by line. */
export function createPage(write: (line: string) => void, dryRun: boolean): Listener {
  return {
    lent({ tier, count, est_tokens: tokens, covers }) {
      write(`Tier ${tier}: ${memories(count)}, ${counted(tokens, 'token')}, ${spanOf(covers)}`)
    },

    done({ batch, reflected, committed, ms }) {
      const { entries, tries } = reflected
      const again = tries > 1 ? `, asked ${tries} times` : ''
      const seconds = (ms / 1_000).toFixed(1)
      write(`  ${reflections(entries.length)} of tier ${batch.tier + 1} in ${seconds} s${again}`)
      if (dryRun) entries.forEach(entry => write(lineOf(entry)))
      if (committed) write(`  still waiting: ${debtOf(committed.reflection)}`)
    },

    late({ batch_id: batch }) {
      write(`  batch ${batch} ran out before it was committed; checking out anew`)
    },

    finished(tier) {
      write(`Tier ${tier}: no ${tier === 1 ? 'raw memories' : 'reflections'} are waiting`)
    },
  }
}

/** What it came to, in one sentence. */
export function sumOf(all: readonly Done[], dryRun: boolean): string {
  if (all.length === 0) return 'Nothing was waiting to be consolidated.'
  const sum = (figure: (done: Done) => number): number =>
    all.reduce((total, done) => total + figure(done), 0)
  const written = reflections(sum(({ reflected }) => reflected.entries.length))
  const read = counted(
    sum(({ reflected }) => reflected.inputTokens),
    'token',
  )
  const spent = `the model read ${read} and wrote ${numbers.format(
    sum(({ reflected }) => reflected.outputTokens),
  )}`
  if (dryRun) return `Dry run: ${written} written, none committed; ${spent}.`
  const batches = counted(all.length, 'batch', 'batches')
  return `${memories(sum(({ batch }) => batch.count))} became ${written} in ${batches}; ${spent}.`
}

/** What happened, for programs. */
export const reportOf = (
  all: readonly Done[],
  { model, dryRun }: { model: string; dryRun: boolean },
) => ({
  model,
  dry_run: dryRun,
  batches: all.map(({ batch, reflected, committed, ms }) => ({
    batch_id: batch.batch_id,
    tier: batch.tier,
    count: batch.count,
    est_tokens: batch.est_tokens,
    covers: batch.covers,
    entries: reflected.entries,
    tries: reflected.tries,
    input_tokens: reflected.inputTokens,
    output_tokens: reflected.outputTokens,
    created: committed?.created ?? [],
    ms: Math.round(ms),
  })),
  reflection: all.at(-1)?.committed?.reflection ?? null,
})

const numbers = new Intl.NumberFormat('en')

const counted = (value: number, one: string, many = `${one}s`): string =>
  `${numbers.format(value)} ${value === 1 ? one : many}`

const memories = (value: number): string => counted(value, 'memory', 'memories')
const reflections = (value: number): string => counted(value, 'reflection')

function spanOf(covers: Batch['covers']): string {
  const [from, to] = [covers.from.slice(0, 10), covers.to.slice(0, 10)]
  return from === to ? from : `${from} to ${to}`
}

const lineOf = ({ text, importance }: Done['reflected']['entries'][number]): string =>
  `  ${String(importance).padStart(2)}  ${text}`

function debtOf({
  unconsolidated: { raw, tier2 },
}: NonNullable<Done['committed']>['reflection']): string {
  const importance = numbers.format(tier2.importance)
  return `${counted(raw.est_tokens, 'raw token')}, ${reflections(tier2.count)} of importance ${importance}`
}
