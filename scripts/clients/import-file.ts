import { readOptions, type ImportOptions } from '#scripts/clients/import/options.ts'
import {
  exitCodeOf,
  formatResult,
  formatSurvey,
  sumTotals,
  toJsonReport,
  type ImportResult,
} from '#scripts/clients/import/report.ts'
import {
  lineBytes,
  openExport,
  surveyExport,
  type LineSet,
  type OpenExport,
} from '#scripts/clients/import/survey.ts'
import { describeVault } from '#scripts/service-connection.ts'
import { openProgressDisplay, type ProgressDisplay } from '#scripts/clients/upload/progress.ts'
import { sendParts } from '#scripts/clients/upload/send-parts.ts'
import {
  deleteState,
  newState,
  readState,
  type UploadState,
} from '#scripts/clients/upload/state.ts'
import { Refusal } from '#shared/core/errors.ts'

process.exitCode = await main(readOptions())

/** @returns the exit code. */
async function main(options: ImportOptions): Promise<number> {
  try {
    const source = await openExport(options.from, options.path)
    const survey = await surveyExport(source, options.path)
    if (!options.json) process.stdout.write(formatSurvey(source.format, survey))
    const end = { format: source.format, survey, totals: undefined, stopped: null }
    if (options.dryRun) return report(options, end)
    const states = survey.sets.map(set => openState(options, set))
    const stopped = await send(options, source, states, result =>
      report(options, { ...end, ...result }),
    )
    return report(options, { ...end, ...totalsOf(states), stopped })
  } catch (error) {
    if (!(error instanceof Refusal) && !(error as NodeJS.ErrnoException).code) throw error
    const { message, hint } = error as Refusal
    process.stderr.write(`${message}\n${hint ? `${hint}\n` : ''}`)
    return 2
  }
}

type SetState = { set: LineSet; state: UploadState; statePath: string }

type End = Pick<ImportResult, 'totals' | 'stopped'>

function totalsOf(states: readonly SetState[]): { totals: ImportResult['totals'] } {
  return { totals: sumTotals(states.map(({ state }) => state.totals)) }
}

/** The position of an earlier run of the same export for the same vault, or the beginning. */
function openState(options: ImportOptions, set: LineSet): SetState {
  const { path, baseUrl, session, embeddings, onConflict, fresh } = options
  const vault = describeVault(options)
  const of = JSON.stringify({ ...set, baseUrl, vault, session, embeddings, onConflict })
  const suffix = set.kind === 'upload' ? 'import-state' : 'restore-state'
  const statePath = `${path.replace(/[/\\]$/, '')}.${suffix}.json`
  const state = (fresh ? undefined : readState(statePath, of)) ?? newState(of)
  return { set, state, statePath }
}

/** @returns why it stopped; null when everything was sent. */
async function send(
  options: ImportOptions,
  source: OpenExport,
  states: readonly SetState[],
  onStopped: (end: End) => number,
): Promise<Refusal | null> {
  const display = openProgressDisplay(process.stderr, 'memories')
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      display.close()
      const stopped = new Refusal('unavailable', `Stopped by ${signal}`)
      process.exit(onStopped({ ...totalsOf(states), stopped }))
    })
  }
  try {
    for (const state of states) await sendSet(options, source, state, display)
    for (const { statePath } of states) deleteState(statePath)
    return null
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  } finally {
    display.close()
  }
}

async function sendSet(
  options: ImportOptions,
  source: OpenExport,
  { set, state, statePath }: SetState,
  display: ProgressDisplay,
): Promise<void> {
  if (state.index > 0) display.note(`Going on after memory ${state.line.toLocaleString('en')}`)
  // Restored memories have sessions of their own.
  const session = set.kind === 'upload' ? options.session : undefined
  await sendParts(
    { ...options, kind: set.kind, session },
    { source: lineBytes(source, set.kind, state.offset), state, size: set.bytes, statePath },
    display,
  )
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
