import { createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { formatUsageError } from '#scripts/command-line.ts'
import { uploadPart, type PartResult } from '#scripts/upload/upload-part.ts'
import { help, readOptions, type UploadOptions } from '#scripts/upload/options.ts'
import {
  formatCounts,
  openProgressDisplay,
  type ProgressDisplay,
} from '#scripts/upload/progress.ts'
import { splitIntoParts, type UploadPart } from '#scripts/upload/split-file.ts'
import {
  deleteState,
  errorsMax,
  newState,
  readState,
  writeState,
  type UploadState,
} from '#scripts/upload/state.ts'
import { Refusal } from '#shared/core/errors.ts'

const mebibyte = 1024 * 1024

/** Limits of the service: 64 MiB per request (a part stays below); lines of 256 KiB, of an export 8 MiB. */
const limits = {
  upload: { bytesMax: 60 * mebibyte, lineBytesMax: 256 * 1024 },
  import: { bytesMax: 60 * mebibyte, lineBytesMax: 8 * mebibyte },
}

/** The result of a part in which every line is too long. */
const emptyResult: PartResult = { stored: 0, replaced: 0, skipped: 0, failed: 0, errors: [] }

const options = readOptions(process.argv.slice(2), process.env)
if (options === 'help') process.stdout.write(help)
else if (Array.isArray(options)) {
  process.stderr.write(formatUsageError(options, help))
  process.exitCode = 2
} else process.exitCode = await main(options)

/** @returns the exit code. */
async function main(options: UploadOptions): Promise<number> {
  const display = openProgressDisplay(process.stderr)
  let state: UploadState | undefined
  try {
    const file = openFileUpload(options)
    const opened = (state = file.state)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        display.close()
        process.exit(reportResult(options, opened, signalRefusal(signal)))
      })
    }
    if (state.index > 0) display.note(`Going on after line ${state.line.toLocaleString('en')}`)
    await uploadParts(options, file, display)
    if (file.statePath) deleteState(file.statePath)
    display.close()
    return reportResult(options, state, null)
  } catch (error) {
    display.close()
    if (error instanceof Refusal) return reportResult(options, state, error)
    const { code, message } = error as NodeJS.ErrnoException
    if (!code) throw error
    process.stderr.write(`${message}\n`)
    return state ? 3 : 2
  }
}

/** A request in flight is not awaited: its idempotency key makes a repetition safe. */
function signalRefusal(signal: NodeJS.Signals): Refusal {
  return new Refusal('unavailable', signal === 'SIGINT' ? 'Stopped' : `Stopped by ${signal}`)
}

type FileUpload = {
  source: AsyncIterable<Uint8Array>
  state: UploadState
  /** Bytes; null for standard input. */
  size: number | null
  statePath: string | null
}

/** Opens the file where an earlier run stopped, if that was the same file for the same vault. */
function openFileUpload(options: UploadOptions): FileUpload {
  const { file, baseUrl, kind, session, embeddings, onConflict, fresh } = options
  if (file === '-') {
    return { source: process.stdin, state: newState('-'), size: null, statePath: null }
  }
  const { size, mtimeMs } = statSync(file)
  const vault = options.key.replace(/:.*$/, '').slice(-4)
  const identity = { path: resolve(file), size, mtimeMs, baseUrl, vault }
  const fingerprint = JSON.stringify({ ...identity, kind, session, embeddings, onConflict })
  const statePath = `${file}.upload-state.json`
  const state = (fresh ? undefined : readState(statePath, fingerprint)) ?? newState(fingerprint)
  return { source: createReadStream(file, { start: state.offset }), state, size, statePath }
}

async function uploadParts(
  options: UploadOptions,
  { source, state, size, statePath }: FileUpload,
  display: ProgressDisplay,
): Promise<void> {
  const partLimits = { ...limits[options.kind], linesMax: options.partLines }
  const from = { index: state.index, offset: state.offset, line: state.line }
  for await (const part of splitIntoParts(source, partLimits, from)) {
    const shareAt = (offset: number): number | null => (size ? offset / size : null)
    const partStart = state.offset
    display.progress({ share: shareAt(partStart), totals: state.totals })
    const result =
      part.lineNumbers.length === 0
        ? emptyResult
        : await uploadPart(options, part.body, {
            idempotencyKey: `upload-file ${state.run} ${part.index}`,
            onProgress: share =>
              display.progress({
                share: shareAt(partStart + share * (part.endOffset - partStart)),
                totals: state.totals,
              }),
            onRetry: (why, seconds) => display.note(`${why}; again in ${seconds} s`),
          })
    addPartResult(state, part, result)
    if (statePath) writeState(statePath, state)
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

/** Prints the result. @returns the exit code. */
function reportResult(
  options: UploadOptions,
  state: UploadState | undefined,
  stopped: Refusal | null,
): number {
  const totals = state?.totals ?? newState('').totals
  const code = stopped ? 3 : totals.failed > 0 ? 1 : 0
  const status = stopped ? 'stopped' : totals.failed > 0 ? 'partial' : 'complete'
  if (options.json) {
    const why = stopped && { error: stopped.message, ...(stopped.hint && { hint: stopped.hint }) }
    process.stdout.write(`${JSON.stringify({ status, ...totals, ...why })}\n`)
    return code
  }
  for (const { line, error } of totals.errors) process.stdout.write(`line ${line}: ${error}\n`)
  process.stdout.write(`${status}: ${formatCounts(totals)}\n`)
  if (stopped) {
    const goOn = options.file === '-' ? '' : 'Run it again to go on.\n'
    process.stderr.write(`${stopped.message}\n${stopped.hint ? `${stopped.hint}\n` : ''}${goOn}`)
  }
  return code
}
