import { createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { formatCounts, newState, type UploadState } from '#api/import/send/progress.ts'
import { uploadClient } from '#api/import/send/upload-part.ts'
import { describeVault } from '#scripts/service-connection.ts'
import { readOptions, type UploadOptions } from '#scripts/clients/upload/options.ts'
import { sendAll, type SavedLines } from '#scripts/clients/upload/send-all.ts'
import { readState } from '#scripts/clients/upload/state.ts'
import type { Refusal } from '#shared/core/errors.ts'

process.exitCode = await main(readOptions())

/** @returns the exit code. */
async function main(options: UploadOptions): Promise<number> {
  let lines: SavedLines | undefined
  try {
    const opened = (lines = openLines(options))
    const client = uploadClient(options.baseUrl, options.key, options.user)
    const target = { ...options, client }
    const report = (stopped: Refusal | null): number => reportResult(options, opened.state, stopped)
    return report(await sendAll([{ target, lines }], ['line', 'lines'], report))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!code) throw error
    process.stderr.write(`${message}\n`)
    return lines ? 3 : 2
  }
}

/** Opens the file where an earlier run stopped, if that was the same file for the same vault. */
function openLines(options: UploadOptions): SavedLines {
  const { file, baseUrl, kind, session, embeddings, onConflict, fresh } = options
  if (file === '-') {
    return { source: process.stdin, state: newState('-'), size: null, statePath: null }
  }
  const { size, mtimeMs } = statSync(file)
  const vault = describeVault(options)
  const identity = { path: resolve(file), size, mtimeMs, baseUrl, vault }
  const fingerprint = JSON.stringify({ ...identity, kind, session, embeddings, onConflict })
  const statePath = `${file}.upload-state.json`
  const state = (fresh ? undefined : readState(statePath, fingerprint)) ?? newState(fingerprint)
  return { source: createReadStream(file, { start: state.offset }), state, size, statePath }
}

/** Prints the result. @returns the exit code. */
function reportResult(
  options: UploadOptions,
  { totals }: UploadState,
  stopped: Refusal | null,
): number {
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
