import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { isZip, readZip } from '#scripts/import/zip.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A file of an export, wherever it lies. */
export type ExportFile = {
  /** Its path in the export, with `/`. */
  name: string
  open(): AsyncIterable<Uint8Array>
}

const filesMax = 1_000_000

/** What macOS writes beside files: their attributes, under the same names. */
const isOfMacOs = ({ name }: ExportFile): boolean => /(?:^|\/)(?:__MACOSX\/|\._)/.test(name)

/**
 * The files of an export: a file, a folder with all below it, or a zip archive, without those of macOS.
 *
 * @returns in the order of their names
 * @throws Refusal `invalid` for a damaged archive; an error with a `code` when it cannot be read.
 */
export async function listExportFiles(path: string): Promise<ExportFile[]> {
  const files = (await stat(path)).isDirectory()
    ? await listFolder(path)
    : (await isZip(path))
      ? await readZip(path)
      : [{ name: basename(path), open: () => createReadStream(path) }]
  return files
    .filter(file => !isOfMacOs(file))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

async function listFolder(path: string): Promise<ExportFile[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  if (entries.length > filesMax)
    throw new Refusal('too-large', `${path} has more than 1,000,000 files`)
  return entries
    .filter(entry => entry.isFile())
    .map(entry => {
      const file = join(entry.parentPath, entry.name)
      return {
        name: relative(path, file).split(sep).join('/'),
        open: () => createReadStream(file),
      }
    })
}
