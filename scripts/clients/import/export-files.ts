import { mkdtempSync, openAsBlob, rmSync, statSync } from 'node:fs'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, relative, sep } from 'node:path'
import { Readable } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { fileOf, listExportFiles, type ExportFile } from '#api/import/export-files.ts'
import { Refusal } from '#shared/core/errors.ts'

const filesMax = 1_000_000

/**
 * Lists the files of an export: a file, a folder with all below it, or a zip archive, with those of archives in them.
 *
 * @throws as `listExportFiles`
 */
export async function listFilesAt(path: string): Promise<ExportFile[]> {
  const isFolder = (await stat(path)).isDirectory()
  const given = isFolder ? await listFolder(path) : [fileAt(path, basename(path))]
  const files = await listExportFiles(given, unpack)
  const names = new Set(files.map(({ name }) => name))
  return files.flatMap(file => {
    const name = file.name.replace(/\.zst$/, '')
    if (name === file.name) return file
    // Codex compresses its rollouts after a week, and may be doing it now.
    return names.has(name) ? [] : { name, open: () => decompress(file) }
  })
}

/** Lists the files at a path as they are: a document of Office is an archive. */
export async function listDocumentsAt(path: string): Promise<ExportFile[]> {
  if (!(await stat(path)).isDirectory()) return [fileAt(path, basename(path))]
  return (await listFolder(path)).toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

async function* decompress(file: ExportFile): AsyncGenerator<Uint8Array> {
  try {
    yield* Readable.from(file.open()).pipe(createZstdDecompress()) as AsyncIterable<Uint8Array>
  } catch (error) {
    throw new Refusal(
      'invalid',
      `${file.name} cannot be decompressed: ${(error as Error).message}`,
      'Leave it out, or decompress it with zstd -d',
    )
  }
}

const fileAt = (path: string, name: string): ExportFile =>
  fileOf(name, () => openAsBlob(path), statSync(path).mtimeMs)

async function listFolder(path: string): Promise<ExportFile[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  if (entries.length > filesMax)
    throw new Refusal('too-large', `${path} has more than 1,000,000 files`)
  return entries
    .filter(entry => entry.isFile())
    .map(entry => {
      const file = join(entry.parentPath, entry.name)
      return fileAt(file, relative(path, file).split(sep).join('/'))
    })
}

let unpacked: string | undefined
let unpackedFiles = 0

/** Writes an archive within another to a folder that goes with the process. */
async function unpack(file: ExportFile): Promise<Blob> {
  if (unpacked === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'memory-vault-import-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    unpacked = folder
  }
  const path = join(unpacked, `${++unpackedFiles}.zip`)
  await writeFile(path, file.open())
  return openAsBlob(path)
}
