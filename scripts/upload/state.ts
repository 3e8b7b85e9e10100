import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/** What became of the lines so far. */
export type UploadTotals = {
  lines: number
  stored: number
  replaced: number
  skipped: number
  failed: number
  /** The first faulty lines, by their place in the file. */
  errors: { line: number; error: string }[]
}

/** How far a file is: enough to go on after anything. */
export type UploadState = {
  version: 1
  /** Names this run: with it a part that is sent again is known to the service. */
  run: string
  /** What is sent and where to; another one begins anew. */
  of: string
  /** The next part: its number, and where it begins in the file. */
  index: number
  offset: number
  line: number
  totals: UploadTotals
}

/** The first faulty lines that are kept. */
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

/** What an earlier run has left beside the file; undefined when it was of something else, or nothing. */
export function readState(path: string, fingerprint: string): UploadState | undefined {
  try {
    const state = JSON.parse(readFileSync(path, 'utf8')) as UploadState
    return state.version === 1 && state.of === fingerprint ? state : undefined
  } catch {
    return undefined
  }
}

/** Replaced in one step: whoever is killed leaves the old one or the new one. */
export function writeState(path: string, state: UploadState): void {
  writeFileSync(`${path}.new`, JSON.stringify(state))
  renameSync(`${path}.new`, path)
}

export const deleteState = (path: string): void => rmSync(path, { force: true })
