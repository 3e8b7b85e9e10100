import { chunksOf, isZip, readZip } from '#api/import/archive.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A file of an export, wherever it lies. */
export type ExportFile = {
  /** Its path in the export, with `/`. */
  name: string
  /** For reading it at any place; missing within an archive. */
  blob?(): Promise<Blob>
  /** How many bytes it has, and how many of its archive; missing for a file that is in none. */
  size?: { bytes: number; packedBytes: number }
  /** When it was changed last, in milliseconds since 1970, where that is known. */
  modified?: number
  open(): AsyncIterable<Uint8Array>
}

/** Keeps a file of an archive where it can be read at any place: the list of an archive is at its end. */
type Unpack = (file: ExportFile) => Promise<Blob>

/** Archives within archives that are opened; one that holds itself has no end. */
const archiveLevels = 3

/**
 * An archive is packed already, so that an archive around it makes it hardly smaller; texts stored without packing get a
 * tenth at most. One that grows by more would fill the disk, or the memory of a browser, with what is no export.
 */
const growthMax = { times: 50, fromBytes: 16 * 1024 * 1024 }

/** Attributes of files, which macOS writes under the same names. */
const isOfMacOs = ({ name }: ExportFile): boolean => /(?:^|\/)(?:__MACOSX\/|\._)/.test(name)

/** A file of a disk or of a browser. */
export const fileOf = (name: string, blob: () => Promise<Blob>, modified?: number): ExportFile => ({
  name,
  blob,
  ...(modified !== undefined && { modified }),
  async *open() {
    yield* chunksOf((await blob()).stream())
  },
})

/**
 * Lists the files of an export with those of its archives in place of the archives, without those of macOS: OpenAI's
 * privacy portal mails one archive within another, Takeout makes several. A single file may be an archive by any name.
 *
 * @returns in the order of their names
 * @throws Refusal `invalid` for a damaged archive, or one within another that grows to many times its size; an error with a `code` when it cannot be read.
 */
export async function listExportFiles(
  given: readonly ExportFile[],
  unpack: Unpack,
): Promise<ExportFile[]> {
  const only = given.length === 1 ? await given[0]!.blob!() : undefined
  const files = only && (await isZip(only)) ? await readArchive(only, given[0]!.name) : given
  const opened = await openArchives(files, unpack, archiveLevels)
  return opened.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

/** Puts the files of archives in place of the archives. */
async function openArchives(
  files: readonly ExportFile[],
  unpack: Unpack,
  levels: number,
): Promise<ExportFile[]> {
  const opened: ExportFile[] = []
  for (const file of files) {
    if (isOfMacOs(file)) continue
    const isNamed = levels > 0 && /\.zip$/i.test(file.name)
    if (isNamed) requireLittleGrowth(file)
    const blob = isNamed ? await (file.blob?.() ?? unpack(file)) : undefined
    if (blob === undefined || !(await isZip(blob))) opened.push(file)
    else {
      const within = (await readArchive(blob, file.name)).map(entry => ({
        ...entry,
        name: `${file.name}/${entry.name}`,
      }))
      opened.push(...(await openArchives(within, unpack, levels - 1)))
    }
  }
  return opened
}

function requireLittleGrowth({ name, size }: ExportFile): void {
  if (!size || size.bytes < growthMax.fromBytes) return
  if (size.bytes <= growthMax.times * size.packedBytes) return
  throw new Refusal(
    'invalid',
    `${name} would be ${size.bytes} bytes, ${growthMax.times} times as much as it takes in its archive`,
    'No export is packed so; unpack it yourself if you know what it holds, and give its files',
  )
}

async function readArchive(archive: Blob, path: string): Promise<ExportFile[]> {
  const damaged = (error: unknown): Refusal =>
    new Refusal(
      'invalid',
      `${path} is no zip archive that can be read: ${(error as Error).message}`,
      'Download the export again, or unpack it and give its files',
    )
  try {
    const files = await readZip(archive)
    return files.map(({ name, open, modified, ...size }) => ({
      name,
      size,
      modified,
      async *open() {
        try {
          yield* open()
        } catch (error) {
          throw damaged(new Error(`${name}: ${(error as Error).message}`))
        }
      },
    }))
  } catch (error) {
    throw damaged(error)
  }
}
