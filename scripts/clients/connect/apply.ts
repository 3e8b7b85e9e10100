import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Change } from '#scripts/clients/connect/change.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import {
  backupPath,
  makeRecordFolder,
  removeRecord,
  writeRecord,
} from '#scripts/clients/connect/record.ts'
import { writePrivateFile } from '#scripts/private-file.ts'

/**
 * Carries out a change: first the backup and the record, then the file. A file that is made is its
 * owner's alone; one that is there keeps its mode.
 *
 * @throws FormatError when the file is not any more what the change was made of
 */
export function applyChange({ path, before, after, connected }: Change): void {
  const present = existsSync(path) ? readFileSync(path, 'utf8') : null
  if (present !== before) throw new FormatError(`${path}: it was changed meanwhile; run this again`)
  const mode = present === null ? 0o600 : statSync(path).mode & 0o7777
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  if (connected) {
    makeRecordFolder(path)
    if (connected.original !== null) writeWithMode(backupPath(path), connected.original, mode)
    writeRecord(path, connected.record)
  }
  if (after === null) rmSync(path, { force: true })
  else if (after !== before) writeWithMode(path, after, mode)
  if (!connected) removeRecord(path)
}

function writeWithMode(path: string, text: string, mode: number): void {
  writePrivateFile(path, text)
  if (mode !== 0o600) chmodSync(path, mode)
}

/** Whether other users of the machine may read a file, which has a key in it now. */
export const isReadableByOthers = (path: string): boolean =>
  process.platform !== 'win32' && existsSync(path) && (statSync(path).mode & 0o044) !== 0
