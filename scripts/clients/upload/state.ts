import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/** Counts of the lines so far. */
export type UploadTotals = {
  lines: number
  stored: number
  replaced: number
  skipped: number
  failed: number
  /** The first faulty lines, by their number in the file. */
  errors: { line: number; error: string }[]
}

/** The saved position of an upload, to resume it after an interruption. */
export type UploadState = {
  version: 1
  /** Id of this run; part of the idempotency key of each part. Another one after a part failed or was cancelled. */
  run: string
  /** Fingerprint of the file and the target; a different one starts a new run. */
  of: string
  /** The next part: its number and its byte offset and line in the file. */
  index: number
  offset: number
  line: number
  totals: UploadTotals
}

/** How many faulty lines are recorded. */
export const errorsMax = 20

export const newState = (fingerprint: string): UploadState => ({
  version: 1,
  run: randomUUID(),
  of: fingerprint,
  index: 0,
  offset: 0,
  line: 0,
  totals: { lines: 0, stored: 0, replaced: 0, skipped: 0, failed: 0, errors: [] },
})

/** Reads the state of an earlier run; undefined if there is none or its fingerprint differs. */
export function readState(path: string, fingerprint: string): UploadState | undefined {
  try {
    const state = JSON.parse(readFileSync(path, 'utf8')) as UploadState
    return state.version === 1 && state.of === fingerprint ? state : undefined
  } catch {
    return undefined
  }
}

/** Replaces the file atomically: a killed process leaves the old or the new state. */
export function writeState(path: string, state: UploadState): void {
  writeFileSync(`${path}.new`, JSON.stringify(state))
  renameSync(`${path}.new`, path)
}

/** Removes the position of a finished run; one that cannot be removed does no harm. */
export function deleteState(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The next run goes on from it, and finds what was stored.
  }
}
