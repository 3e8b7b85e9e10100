import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'

/** One setting that was written: its text, the text it replaced, and how much of its path was there. */
export type WrittenSetting = { at: string[]; raw: string; replaced: string | null; kept: number }

/** What was done to a file, kept in a folder at its side until it is undone. */
export type ConnectRecord = {
  /** The file did not exist. */
  created: boolean
  /** SHA-256 of the file as it was written. */
  written: string
  settings: WrittenSetting[]
}

/** Its own `.gitignore` keeps it out of a project's repository: backup and record hold keys. */
const recordFolder = (file: string): string => join(dirname(file), '.memory-vault')

export const backupPath = (file: string): string =>
  join(recordFolder(file), `${basename(file)}.before`)
const recordPath = (file: string): string => join(recordFolder(file), `${basename(file)}.json`)

/** Makes the folder of a file's record and backup. */
export function makeRecordFolder(file: string): void {
  mkdirSync(recordFolder(file), { recursive: true, mode: 0o700 })
  writePrivateFile(join(recordFolder(file), '.gitignore'), '*\n')
}

export const hashText = (text: string): string => createHash('sha256').update(text).digest('hex')

/** @returns undefined for a file that is not connected. */
export function readRecord(file: string): ConnectRecord | undefined {
  if (!existsSync(recordPath(file))) return undefined
  return JSON.parse(readFileSync(recordPath(file), 'utf8')) as ConnectRecord
}

export const writeRecord = (file: string, record: ConnectRecord): void =>
  writePrivateFile(recordPath(file), `${JSON.stringify(record, null, 2)}\n`)

/** Removes the record and the backup, and their folder with the last of them. */
export function removeRecord(file: string): void {
  rmSync(recordPath(file), { force: true })
  rmSync(backupPath(file), { force: true })
  const folder = recordFolder(file)
  if (existsSync(folder) && readdirSync(folder).every(name => name === '.gitignore'))
    rmSync(folder, { recursive: true })
}
