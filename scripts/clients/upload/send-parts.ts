import { randomUUID } from 'node:crypto'
import {
  uploadPart,
  type PartResult,
  type PartTarget,
} from '#scripts/clients/upload/upload-part.ts'
import { openProgressDisplay, type ProgressDisplay } from '#scripts/clients/upload/progress.ts'
import { splitIntoParts, type UploadPart } from '#scripts/clients/upload/split-file.ts'
import {
  deleteState,
  errorsMax,
  writeState,
  type UploadState,
} from '#scripts/clients/upload/state.ts'
import { Refusal } from '#shared/core/errors.ts'

const mebibyte = 1024 * 1024

/** Limits of the service: 64 MiB per request (a part stays below); lines of 256 KiB without their escapes, of an export 8 MiB. */
const limits = {
  upload: { bytesMax: 60 * mebibyte, lineBytesMax: 256 * 1024, escapedBytesMax: 6 * 256 * 1024 },
  import: { bytesMax: 60 * mebibyte, lineBytesMax: 8 * mebibyte },
}

/** The result of a part in which every line is too long. */
const emptyResult: PartResult = { stored: 0, replaced: 0, skipped: 0, failed: 0, errors: [] }

/** Lines that are sent from where an earlier run stopped. */
export type LineSource = {
  /** The bytes from `state.offset` on. */
  source: AsyncIterable<Uint8Array>
  state: UploadState
  /** Bytes; null if unknown. */
  size: number | null
  /** Where the position is saved; null if it is not. */
  statePath: string | null
}

type Target = PartTarget & { partLines: number }

/**
 * Sends sets of lines one after the other, and removes their positions at the end. A signal prints the result so far
 * and exits; a request in flight is not awaited, since its idempotency key makes a repetition safe.
 *
 * @param unit what a line is called, and several
 * @param onSignal prints the result and returns the exit code
 * @returns why it stopped; null when everything was sent
 */
export async function sendAll(
  sets: readonly { target: Target; lines: LineSource }[],
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
      await sendParts(target, lines, display)
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

/**
 * Sends lines in parts, one after the other, and saves the position before the first and after each. Where it
 * cannot be saved they are sent all the same.
 *
 * @throws Refusal as `uploadPart`; `state` then has what was sent before.
 */
async function sendParts(
  target: Target,
  { source, state, size, statePath }: LineSource,
  display: ProgressDisplay,
): Promise<void> {
  const savePosition = openPosition(statePath, display)
  const partLimits = { ...limits[target.kind], linesMax: target.partLines }
  const from = { index: state.index, offset: state.offset, line: state.line }
  savePosition(state)
  for await (const part of splitIntoParts(source, partLimits, from)) {
    const shareAt = (offset: number): number | null => (size ? offset / size : null)
    const partStart = state.offset
    display.progress({ share: shareAt(partStart), totals: state.totals })
    const result =
      part.lineNumbers.length === 0
        ? emptyResult
        : await uploadPart(target, part.body, {
            // With its end: of the same run, another --part-lines makes other parts.
            idempotencyKey: `upload-file ${state.run} ${part.index} ${part.endOffset}`,
            onProgress: share =>
              display.progress({
                share: shareAt(partStart + share * (part.endOffset - partStart)),
                totals: state.totals,
              }),
            onRetry: (why, seconds) => display.note(`${why}; again in ${seconds} s`),
            onWorkLost() {
              state.run = randomUUID()
              savePosition(state)
            },
          })
    addPartResult(state, part, result)
    savePosition(state)
    display.partDone({ share: shareAt(part.endOffset), totals: state.totals })
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

/** Adds the result of a part to the state; line numbers become those of the file. */
function addPartResult(state: UploadState, part: UploadPart, result: PartResult): void {
  const { totals } = state
  totals.lines += part.lineNumbers.length + part.oversizedLines.length
  totals.stored += result.stored
  totals.replaced += result.replaced
  totals.skipped += result.skipped
  totals.failed += result.failed + part.oversizedLines.length
  const errors = [
    ...totals.errors,
    ...result.errors.map(({ line, error }) => ({
      line: part.lineNumbers[line - 1] ?? line,
      error,
    })),
    ...part.oversizedLines.map(line => ({ line, error: 'longer than the service takes' })),
  ]
  totals.errors = errors.toSorted((one, other) => one.line - other.line).slice(0, errorsMax)
  state.index = part.index + 1
  state.offset = part.endOffset
  state.line = part.endLine
}
