import {
  errorsMax,
  mintRun,
  type ProgressDisplay,
  type UploadState,
} from '#api/import/send/progress.ts'
import { splitIntoParts, type UploadPart } from '#api/import/send/split-file.ts'
import { uploadPart, type PartResult, type PartTarget } from '#api/import/send/upload-part.ts'

const mebibyte = 1024 * 1024

/** Limits of the service: 64 MiB per request (a part stays below); lines of 256 KiB without their escapes, of an export 8 MiB. */
const limits = {
  upload: { bytesMax: 60 * mebibyte, lineBytesMax: 256 * 1024, escapedBytesMax: 6 * 256 * 1024 },
  import: { bytesMax: 60 * mebibyte, lineBytesMax: 8 * mebibyte },
}

/** The most lines the service accepts in one request. */
export const partLinesMax = 10_000

/** The result of a part in which every line is too long. */
const emptyResult: PartResult = { stored: 0, replaced: 0, skipped: 0, failed: 0, errors: [] }

/** Lines that are sent from where an earlier run stopped. */
export type LineSource = {
  /** The bytes from `state.offset` on. */
  source: AsyncIterable<Uint8Array>
  /** Is kept up to date. */
  state: UploadState
  /** Bytes; null if unknown. */
  size: number | null
}

export type LineTarget = PartTarget & { partLines: number }

type Watch = {
  display: ProgressDisplay
  /** Keeps the state, before the first part and after each. */
  save?(state: UploadState): void
  /** Ends it: at once while it waits. */
  signal?: AbortSignal
}

/**
 * Sends lines in parts, one after the other.
 *
 * @throws Refusal as `uploadPart`; `state` then has what was sent before.
 */
export async function sendParts(
  target: LineTarget,
  { source, state, size }: LineSource,
  { display, save = () => {}, signal }: Watch,
): Promise<void> {
  const partLimits = { ...limits[target.kind], linesMax: target.partLines }
  const from = { index: state.index, offset: state.offset, line: state.line }
  save(state)
  for await (const part of splitIntoParts(source, partLimits, from)) {
    const shareAt = (offset: number): number | null => (size ? offset / size : null)
    const partStart = state.offset
    display.progress({ share: shareAt(partStart), totals: state.totals })
    const result =
      part.lineNumbers.length === 0
        ? emptyResult
        : await uploadPart(target, part, {
            // With its end: of the same run, another --part-lines makes other parts.
            idempotencyKey: `upload-file ${state.run} ${part.index} ${part.endOffset}`,
            onProgress: share =>
              display.progress({
                share: shareAt(partStart + share * (part.endOffset - partStart)),
                totals: state.totals,
              }),
            onRetry: (why, seconds) => display.note(`${why}; again in ${seconds} s`),
            onWorkLost() {
              state.run = mintRun()
              save(state)
            },
            signal,
          })
    addPartResult(state, part, result)
    save(state)
    display.partDone({ share: shareAt(part.endOffset), totals: state.totals })
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
