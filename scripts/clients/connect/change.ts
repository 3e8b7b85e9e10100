import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ConfigFile } from '#scripts/clients/connect/client.ts'
import {
  FormatError,
  presentDepth,
  type FileFormat,
} from '#scripts/clients/connect/formats/file-format.ts'
import {
  backupPath,
  hashText,
  readRecord,
  type ConnectRecord,
  type WrittenSetting,
} from '#scripts/clients/connect/record.ts'

/** What a command is about to do to a file; null is no file. */
export type Change = {
  /** Links followed: the file itself is changed. */
  path: string
  before: string | null
  after: string | null
  /** Of a file that is connected afterwards: what it says without us, and what is noted beside it. */
  connected?: { original: string | null; record: ConnectRecord }
}

const readText = (path: string): string | null =>
  existsSync(path) ? readFileSync(path, 'utf8') : null

/** The file that a link names, also one that is not there yet. */
function resolveLink(path: string, links = 0): string {
  if (existsSync(path)) return realpathSync(path)
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path
  if (links > 20) throw new FormatError(`${path}: the link leads to itself`)
  return resolveLink(resolve(realpathSync(dirname(path)), readlinkSync(path)), links + 1)
}

/** @throws FormatError, with the file's name, for a file that cannot be changed safely */
export function planConnect({ path: name, format, settings }: ConfigFile): Change {
  const path = resolveLink(name)
  return namingFile(path, () => {
    const before = readText(path)
    const original = withoutConnection(path, format, before)
    const written: WrittenSetting[] = []
    let after = original ?? ''
    for (const { at, value } of settings) {
      const replaced = format.find(after, at)
      const present = replaced === undefined ? undefined : format.read(replaced)
      const raw = format.write(typeof value === 'function' ? value(present) : value, at)
      const kept = presentDepth(format, original ?? '', at)
      after = format.set(after, at, raw)
      written.push({ at: [...at], raw, replaced: replaced ?? null, kept })
    }
    const record = { created: original === null, written: hashText(after), settings: written }
    return { path, before, after, connected: { original, record } }
  })
}

/** @returns undefined for a file that is not connected. */
export function planUndo({ path: name, format }: ConfigFile): Change | undefined {
  const path = resolveLink(name)
  return namingFile(path, () => {
    const record = readRecord(path)
    if (!record) return undefined
    const before = readText(path)
    if (before === null) return { path, before, after: null }
    if (hashText(before) === record.written)
      return { path, before, after: readOriginal(path, record) }
    const changed = record.settings.filter(setting => !stands(before, format, setting))
    if (changed.length > 0) {
      const names = changed.map(({ at }) => at.join('.')).join(', ')
      throw new FormatError(
        `since it was connected, ${names} was changed. Set it as you want it and remove what is left of ` +
          `the connection by hand; ${record.created ? 'the file did not exist before' : `the file as it was is ${backupPath(path)}`}`,
      )
    }
    const after = takeOut(before, format, record.settings)
    const isEmpty = record.created && /^[\s{}]*$/.test(after)
    return { path, before, after: isEmpty ? null : after }
  })
}

const readOriginal = (path: string, { created }: ConnectRecord): string | null =>
  created ? null : readFileSync(backupPath(path), 'utf8')

/** A connected file as it would be without us; settings that were changed since are the person's own. */
function withoutConnection(path: string, format: FileFormat, text: string | null): string | null {
  const record = readRecord(path)
  if (!record || text === null) return text
  if (hashText(text) === record.written) return readOriginal(path, record)
  return takeOut(
    text,
    format,
    record.settings.filter(setting => stands(text, format, setting)),
  )
}

function stands(text: string, format: FileFormat, { at, raw }: WrittenSetting): boolean {
  const found = format.find(text, at)
  return found !== undefined && format.isSame(found, raw)
}

/** Settings go in the opposite order, so that an object is empty when its own turn comes. */
const takeOut = (text: string, format: FileFormat, settings: WrittenSetting[]): string =>
  settings.reduceRight(
    (rest, { at, replaced, kept }) =>
      replaced === null ? format.remove(rest, at, kept) : format.set(rest, at, replaced),
    text,
  )

function namingFile<Result>(path: string, plan: () => Result): Result {
  try {
    return plan()
  } catch (error) {
    if (error instanceof FormatError) throw new FormatError(`${path}: ${error.message}`)
    throw error
  }
}
