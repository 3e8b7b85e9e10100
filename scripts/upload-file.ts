import { createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { faultOf } from '#scripts/command-line.ts'
import { deliver, type Delivered } from '#scripts/upload/deliver.ts'
import { help, readOptions, type Options } from '#scripts/upload/options.ts'
import { countsOf, openPage, type Page } from '#scripts/upload/page.ts'
import { partsOf, type Part } from '#scripts/upload/parts.ts'
import {
  dropState,
  errorsMax,
  newState,
  readState,
  writeState,
  type State,
} from '#scripts/upload/state.ts'
import { Refusal } from '#shared/core/errors.ts'

const mebibyte = 1024 * 1024

/** What the service takes: a part below its 64 MiB, lines of 256 KiB, those of an export of 8 MiB. */
const limits = {
  upload: { bytesMax: 60 * mebibyte, lineBytesMax: 256 * 1024 },
  import: { bytesMax: 60 * mebibyte, lineBytesMax: 8 * mebibyte },
}

/** Of a part in which every line is too long. */
const nothing: Delivered = { stored: 0, replaced: 0, skipped: 0, failed: 0, errors: [] }

const options = readOptions(process.argv.slice(2), process.env)
if (options === 'help') process.stdout.write(help)
else if (Array.isArray(options)) {
  process.stderr.write(faultOf(options, help))
  process.exitCode = 2
} else process.exitCode = await main(options)

/** @returns the exit code. */
async function main(options: Options): Promise<number> {
  const page = openPage(process.stderr)
  let state: State | undefined
  try {
    const file = openFile(options)
    const opened = (state = file.state)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        page.close()
        process.exit(conclude(options, opened, stoppedBy(signal)))
      })
    }
    if (state.index > 0) page.note(`Going on after line ${state.line.toLocaleString('en')}`)
    await sendParts(options, file, page)
    if (file.statePath) dropState(file.statePath)
    page.close()
    return conclude(options, state, null)
  } catch (error) {
    page.close()
    if (error instanceof Refusal) return conclude(options, state, error)
    const { code, message } = error as NodeJS.ErrnoException
    if (!code) throw error
    process.stderr.write(`${message}\n`)
    return state ? 3 : 2
  }
}

/** What is on its way is not waited for: sent again under the same key it is stored once. */
function stoppedBy(signal: NodeJS.Signals): Refusal {
  return new Refusal('unavailable', signal === 'SIGINT' ? 'Stopped' : `Stopped by ${signal}`)
}

type OpenFile = {
  source: AsyncIterable<Uint8Array>
  state: State
  /** Bytes; null of standard input. */
  size: number | null
  statePath: string | null
}

/** The file from where an earlier run has left it, if that was the same file on its way to the same vault. */
function openFile(options: Options): OpenFile {
  const { file, baseUrl, kind, session, embeddings, onConflict, fresh } = options
  if (file === '-') {
    return { source: process.stdin, state: newState('-'), size: null, statePath: null }
  }
  const { size, mtimeMs } = statSync(file)
  const vault = options.key.replace(/:.*$/, '').slice(-4)
  const what = { path: resolve(file), size, mtimeMs, baseUrl, vault }
  const of = JSON.stringify({ ...what, kind, session, embeddings, onConflict })
  const statePath = `${file}.upload-state.json`
  const state = (fresh ? undefined : readState(statePath, of)) ?? newState(of)
  return { source: createReadStream(file, { start: state.offset }), state, size, statePath }
}

async function sendParts(
  options: Options,
  { source, state, size, statePath }: OpenFile,
  page: Page,
): Promise<void> {
  const partLimits = { ...limits[options.kind], linesMax: options.partLines }
  const from = { index: state.index, offset: state.offset, line: state.line }
  for await (const part of partsOf(source, partLimits, from)) {
    const shareAt = (offset: number): number | null => (size ? offset / size : null)
    const begun = state.offset
    page.progress({ share: shareAt(begun), totals: state.totals })
    const delivered =
      part.numbers.length === 0
        ? nothing
        : await deliver(options, part.body, {
            idempotencyKey: `upload-file ${state.run} ${part.index}`,
            progress: share =>
              page.progress({
                share: shareAt(begun + share * (part.end - begun)),
                totals: state.totals,
              }),
            waiting: (why, seconds) => page.note(`${why}; again in ${seconds} s`),
          })
    settle(state, part, delivered)
    if (statePath) writeState(statePath, state)
    page.part({ share: shareAt(part.end), totals: state.totals })
  }
}

/** Adds a part to what is known, its faulty lines by their place in the file. */
function settle(state: State, part: Part, delivered: Delivered): void {
  const { totals } = state
  totals.lines += part.numbers.length + part.tooLong.length
  totals.stored += delivered.stored
  totals.replaced += delivered.replaced
  totals.skipped += delivered.skipped
  totals.failed += delivered.failed + part.tooLong.length
  const errors = [
    ...totals.errors,
    ...delivered.errors.map(({ line, error }) => ({ line: part.numbers[line - 1] ?? line, error })),
    ...part.tooLong.map(line => ({ line, error: 'longer than the service takes' })),
  ]
  totals.errors = errors.toSorted((one, other) => one.line - other.line).slice(0, errorsMax)
  state.index = part.index + 1
  state.offset = part.end
  state.line = part.lineEnd
}

/** Says how it ended. @returns the exit code. */
function conclude(options: Options, state: State | undefined, stopped: Refusal | null): number {
  const totals = state?.totals ?? newState('').totals
  const code = stopped ? 3 : totals.failed > 0 ? 1 : 0
  const status = stopped ? 'stopped' : totals.failed > 0 ? 'partial' : 'complete'
  if (options.json) {
    const why = stopped && { error: stopped.message, ...(stopped.hint && { hint: stopped.hint }) }
    process.stdout.write(`${JSON.stringify({ status, ...totals, ...why })}\n`)
    return code
  }
  for (const { line, error } of totals.errors) process.stdout.write(`line ${line}: ${error}\n`)
  process.stdout.write(`${status}: ${countsOf(totals)}\n`)
  if (stopped) {
    const goOn = options.file === '-' ? '' : 'Run it again to go on.\n'
    process.stderr.write(`${stopped.message}\n${stopped.hint ? `${stopped.hint}\n` : ''}${goOn}`)
  }
  return code
}
