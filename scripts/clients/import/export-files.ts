import { createReadStream, mkdtempSync, rmSync } from 'node:fs'
import { open, readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, relative, sep } from 'node:path'
import { openPromise as openZip } from 'yauzl'
import { Refusal } from '#shared/core/errors.ts'

/** A file of an export, wherever it lies. */
export type ExportFile = {
  /** Its path in the export, with `/`. */
  name: string
  /** Where it lies by itself; undefined within an archive. */
  path?: string
  open(): AsyncIterable<Uint8Array>
}

const filesMax = 1_000_000

/** Attributes of files, which macOS writes under the same names. */
const isOfMacOs = ({ name }: ExportFile): boolean => /(?:^|\/)(?:__MACOSX\/|\._)/.test(name)

/**
 * Lists the files of an export: a file, a folder with all below it, or a zip archive, without those of macOS. Archives
 * in a folder or an archive are opened too: OpenAI's privacy portal mails one within another, Takeout makes several.
 *
 * @returns in the order of their names
 * @throws Refusal `invalid` for a damaged archive; an error with a `code` when it cannot be read.
 */
export async function listExportFiles(path: string): Promise<ExportFile[]> {
  const files = (await stat(path)).isDirectory()
    ? await listFolder(path)
    : (await isZip(path))
      ? await readZip(path)
      : [{ name: basename(path), path, open: () => createReadStream(path) }]
  const opened = await openArchives(files, archiveLevels)
  return opened.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** Archives within archives that are opened; one that holds itself has no end. */
const archiveLevels = 3

/** Puts the files of archives in place of the archives. */
async function openArchives(files: readonly ExportFile[], levels: number): Promise<ExportFile[]> {
  const opened: ExportFile[] = []
  for (const file of files) {
    if (isOfMacOs(file)) continue
    const isArchive = levels > 0 && /\.zip$/i.test(file.name)
    const path = isArchive ? (file.path ?? (await unpack(file))) : undefined
    if (path === undefined || !(await isZip(path))) opened.push(file)
    else {
      const within = (await readZip(path)).map(entry => ({
        ...entry,
        name: `${file.name}/${entry.name}`,
      }))
      opened.push(...(await openArchives(within, levels - 1)))
    }
  }
  return opened
}

let unpacked: string | undefined
let unpackedFiles = 0

/** Writes an archive within another to a folder that goes with the process: its list of files is at its end. */
async function unpack(file: ExportFile): Promise<string> {
  if (unpacked === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'memory-vault-import-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    unpacked = folder
  }
  const path = join(unpacked, `${++unpackedFiles}.zip`)
  await writeFile(path, file.open())
  return path
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
        path: file,
        open: () => createReadStream(file),
      }
    })
}

/** Whether a file begins like a zip archive, which may be empty. */
async function isZip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
    return ['PK\u0003\u0004', 'PK\u0005\u0006'].includes(buffer.toString('latin1'))
  } finally {
    await file.close()
  }
}

/** The archive stays open until the process ends. Names are UTF-8, also where their flag is missing, as macOS does. */
async function readZip(path: string): Promise<ExportFile[]> {
  const damaged = (error: unknown): Refusal =>
    new Refusal(
      'invalid',
      `${path} is no zip archive that can be read: ${(error as Error).message}`,
      'Download the export again, or unpack it and give the folder',
    )
  try {
    const zip = await openZip(path, { autoClose: false, decodeStrings: false })
    const files: ExportFile[] = []
    for await (const entry of zip.eachEntry()) {
      const name = entry.fileNameRaw.toString('utf8')
      const read = async function* (): AsyncGenerator<Uint8Array> {
        try {
          yield* (await zip.openReadStreamPromise(entry)) as AsyncIterable<Uint8Array>
        } catch (error) {
          throw damaged(new Error(`${name}: ${(error as Error).message}`))
        }
      }
      if (!name.endsWith('/')) files.push({ name, open: read })
    }
    return files
  } catch (error) {
    throw damaged(error)
  }
}
