import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { writePrivateFile } from '#scripts/private-file.ts'

/** One setting that was written: its text, the text it replaced, and how much of its path was there. */
export type WrittenSetting = { at: string[]; raw: string; replaced: string | null; kept: number }

/** What was done to a file, kept beside it until it is undone. */
export type ConnectRecord = {
  /** The file did not exist. */
  created: boolean
  /** SHA-256 of the file as it was written. */
  written: string
  settings: WrittenSetting[]
}

export const backupPath = (file: string): string => `${file}.before-memory-vault`
const recordPath = (file: string): string => `${file}.memory-vault.json`

export const hashText = (text: string): string => createHash('sha256').update(text).digest('hex')

/** @returns undefined for a file that is not connected. */
export function readRecord(file: string): ConnectRecord | undefined {
  if (!existsSync(recordPath(file))) return undefined
  return JSON.parse(readFileSync(recordPath(file), 'utf8')) as ConnectRecord
}

export const writeRecord = (file: string, record: ConnectRecord): void =>
  writePrivateFile(recordPath(file), `${JSON.stringify(record, null, 2)}\n`)

/** Removes the record and the backup. */
export function removeRecord(file: string): void {
  rmSync(recordPath(file), { force: true })
  rmSync(backupPath(file), { force: true })
}
