import type { ProgressDisplay, UploadState } from '#api/import/send/progress.ts'
import { sendParts, type LineSource, type LineTarget } from '#api/import/send/send-parts.ts'
import { openProgressDisplay } from '#scripts/clients/upload/progress-bar.ts'
import { deleteState, writeState } from '#scripts/clients/upload/state.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Lines, and where their position is saved; null if it is not. */
export type SavedLines = LineSource & { statePath: string | null }

/**
 * Sends sets of lines one after the other, and removes their positions at the end. A signal prints the result so far
 * and exits; a request in flight is not awaited, since its idempotency key makes a repetition safe.
 *
 * @param unit what a line is called, and several
 * @param onSignal prints the result and returns the exit code
 * @returns why it stopped; null when everything was sent
 */
export async function sendAll(
  sets: readonly { target: LineTarget; lines: SavedLines }[],
  [unit, units]: readonly [string, string],
  onSignal: (stopped: Refusal) => number,
): Promise<Refusal | null> {
  const display = openProgressDisplay(process.stderr, units)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      display.close()
      const why = signal === 'SIGINT' ? 'Stopped' : `Stopped by ${signal}`
      process.exit(onSignal(new Refusal('unavailable', why)))
    })
  }
  try {
    for (const { target, lines } of sets) {
      const { index, line } = lines.state
      if (index > 0) display.note(`Going on after ${unit} ${line.toLocaleString('en')}`)
      await sendParts(target, lines, { display, save: openPosition(lines.statePath, display) })
    }
    for (const { lines } of sets) if (lines.statePath !== null) deleteState(lines.statePath)
    return null
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  } finally {
    display.close()
  }
}

/** Returns a function that saves positions in a file, if there is one. It notes the first failure only. */
function openPosition(path: string | null, display: ProgressDisplay): (state: UploadState) => void {
  let isNoted = false
  return state => {
    try {
      if (path !== null) writeState(path, state)
    } catch (error) {
      if (!isNoted) display.note(`The position cannot be saved: ${(error as Error).message}`)
      isNoted = true
    }
  }
}
