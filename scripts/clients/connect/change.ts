import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { ConfigFile } from '#scripts/clients/connect/client.ts'
import { takeOut } from '#scripts/clients/connect/diff.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import { writePrivateFile } from '#scripts/private-file.ts'

/** What a command is about to do to a file; null is no file. */
export type Change = {
  /** Links followed: the file itself is changed. */
  path: string
  /** The file as it is now; `.before` beside it is as it was before the connection. */
  present: string | null
  /** The file as it will be. */
  planned: string | null
  /** For a file that is connected afterwards: what stands in it without the connection. */
  original?: string | null
  /** For a file that is no longer connected: settings that the person has changed since, which stay. */
  kept?: string[]
}

/** The folder that keeps a file as it was and as it was written, until the connection is undone. */
export const backupFolder = (file: string): string => join(dirname(file), '.memory-vault')

/** The file as it was; a file that was made has none. */
export const backupPath = (file: string): string =>
  join(backupFolder(file), `${basename(file)}.before`)

/** The file as it was written; a file that is not connected has none. */
const writtenPath = (file: string): string => join(backupFolder(file), `${basename(file)}.after`)

/**
 * A file that gets no settings is left, or becomes what it was before it was connected.
 *
 * @throws FormatError, with the file's name, for a file that cannot be changed safely
 */
export const planConnect = (file: ConfigFile): Change =>
  planFor(file, (path, present) => {
    const { chosen = file.settings } = file
    if (chosen.length === 0) return planUndo(file) ?? { path, present, planned: present }
    const original = present === null ? null : disconnect(file, path, present).text
    let planned = original ?? ''
    for (const { at, value } of chosen) {
      const former = file.format.get(planned, at)
      planned = file.format.set(planned, at, typeof value === 'function' ? value(former) : value)
    }
    return { path, present, planned, original }
  })

/**
 * @returns undefined for a file that is not connected.
 * @throws FormatError, with the file's name, for a file that cannot be read
 */
export const planUndo = (file: ConfigFile): Change | undefined =>
  planFor(file, (path, present) => {
    if (!existsSync(writtenPath(path))) return undefined
    if (present === null) return { path, present, planned: null }
    const { text, kept } = disconnect(file, path, present)
    return { path, present, planned: text, kept }
  })

function planFor<Result>(
  { path: name }: ConfigFile,
  plan: (path: string, present: string | null) => Result,
): Result {
  const path = resolveLink(name)
  try {
    return plan(path, readText(path))
  } catch (error) {
    if (error instanceof FormatError) throw new FormatError(`${path}: ${error.message}`)
    throw error
  }
}

const readText = (path: string): string | null =>
  existsSync(path) ? readFileSync(path, 'utf8') : null

/** Returns the file that a link names, also one that is not there yet. */
export function resolveLink(path: string, links = 0): string {
  if (existsSync(path)) return realpathSync(path)
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path
  if (links > 20) throw new FormatError(`${path}: the link leads to itself`)
  return resolveLink(resolve(realpathSync(dirname(path)), readlinkSync(path)), links + 1)
}

type Disconnected = {
  text: string | null
  /** Settings that were changed since: a person's own now, which stay. */
  kept: string[]
}

/**
 * Takes the connection out of the text of a file. This is the backup where nothing was changed since; else the
 * written lines go, or the settings where a program has written the whole file again in its own form.
 */
function disconnect({ format, settings }: ConfigFile, path: string, text: string): Disconnected {
  const written = readText(writtenPath(path))
  if (written === null) return { text, kept: [] }
  const before = readText(backupPath(path))
  if (text === written) return { text: before, kept: [] }
  const orNoFile = (rest: string): string | null =>
    before === null && /^[\s{}]*$/.test(rest) ? null : rest
  const disconnected = takeOut(text, before ?? '', written)
  if (disconnected !== undefined) return { text: orNoFile(disconnected), kept: [] }
  let rest = text
  const kept: string[] = []
  for (const { at, ownPartOf } of settings.toReversed()) {
    const [present, ours, original] = [text, written, before ?? ''].map(one => format.get(one, at))
    // It belongs to another way of memory, or the person took it out.
    if (present === undefined || isDeepStrictEqual(ours, original)) continue
    const ownPart = isDeepStrictEqual(present, ours) ? undefined : ownPartOf?.(present)
    if (ownPart !== undefined) rest = format.set(rest, at, ownPart)
    // An object is an entry of ours by its name; another value that was changed is the person's.
    else if (isDeepStrictEqual(present, ours) || ownPartOf || typeof present === 'object')
      rest = format.putBack(rest, at, before ?? '')
    else kept.push(at.join('.'))
  }
  return { text: orNoFile(rest), kept }
}

/**
 * Carries out a change: the backup first, then the file. A file with a key in it is its owner's alone, until it is
 * undone: then it has the mode that it had.
 *
 * @throws FormatError when the file is no longer what the change was made of
 */
export function applyChange({ path, present, planned, original }: Change): void {
  if (readText(path) !== present) {
    throw new FormatError(`${path}: it was changed meanwhile; run this again`)
  }
  const modeBefore = modeWithout(path)
  if (original !== undefined) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeBackup(path, original, planned!, modeBefore)
  }
  const mode = original === undefined ? modeBefore : modeBefore & 0o700
  if (planned === null) rmSync(path, { force: true })
  else if (planned === present) chmodSync(path, mode)
  else writeWithMode(path, planned, mode)
  if (original === undefined) removeBackup(path)
  if (planned === null) removeOwnFolders(path)
}

/** Removes the folders around a file that bear the name of this service, once they are empty. */
function removeOwnFolders(path: string): void {
  const isOwn = (folder: string): boolean => folder.split(sep).includes('memory-vault')
  for (let folder = dirname(path); isOwn(folder); folder = dirname(folder)) {
    if (!existsSync(folder) || readdirSync(folder).length > 0) return
    rmdirSync(folder)
  }
}

/** The mode of a file as it is without the connection. */
function modeWithout(path: string): number {
  const kept = [backupPath(path), path].find(file => existsSync(file))
  return kept === undefined ? 0o600 : statSync(kept).mode & 0o7777
}

/** Makes the folder beside a file. A `.gitignore` keeps it out of a project's repository, since it holds keys. */
export function openBackupFolder(file: string): void {
  mkdirSync(backupFolder(file), { recursive: true, mode: 0o700 })
  writePrivateFile(join(backupFolder(file), '.gitignore'), '*\n')
}

/** Removes the folder beside a file once nothing is kept in it. */
export function closeBackupFolder(file: string): void {
  const folder = backupFolder(file)
  if (existsSync(folder) && readdirSync(folder).every(name => name === '.gitignore')) {
    rmSync(folder, { recursive: true })
  }
}

function writeBackup(path: string, original: string | null, written: string, mode: number): void {
  openBackupFolder(path)
  if (original === null) rmSync(backupPath(path), { force: true })
  else writeWithMode(backupPath(path), original, mode)
  writePrivateFile(writtenPath(path), written)
}

function removeBackup(path: string): void {
  rmSync(writtenPath(path), { force: true })
  rmSync(backupPath(path), { force: true })
  closeBackupFolder(path)
}

function writeWithMode(path: string, text: string, mode: number): void {
  writePrivateFile(path, text)
  if (mode !== 0o600) chmodSync(path, mode)
}
