import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { UploadState } from '#api/import/send/progress.ts'

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
