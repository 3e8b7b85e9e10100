import { formatBytes, formatShortDay, pluralize } from '#api/console/app/format.ts'
import { chunksOf } from '#api/import/archive.ts'
import { fileOf, listExportFiles, type ExportFile } from '#api/import/export-files.ts'
import { formats, guessFormat } from '#api/import/formats.ts'
import { recognize } from '#api/import/recognize.ts'
import { lineBytes, openExport, surveyExport, type Survey } from '#api/import/survey.ts'
import { Refusal } from '#shared/core/errors.ts'
import { splitLines } from '#shared/vault/bulk/split-lines.ts'

/** What files can be taken for: own lines, an export of a vault, or an export of another product. */
export const readings: readonly (readonly [name: string, words: string])[] = [
  ['upload', 'lines of what was said'],
  ['import', 'an export of a vault'],
  ...Object.entries(formats).map(
    ([name, { product }]) => [name, `an export of ${product}`] as const,
  ),
]

/** Lines of one kind, which can be read from any place as often as needed. */
type Lines = {
  kind: 'upload' | 'import'
  bytes: number
  open(offset: number): AsyncIterable<Uint8Array>
}

/** What chosen files hold. */
export type FoundLines = {
  /** A name of `readings`. */
  reading: string
  /** The file's. */
  name: string
  /** A sentence. */
  summary: string
  /** What is left out, and what to know. */
  notes: readonly string[]
  count: number
  unit: 'line' | 'memory'
  sets: readonly Lines[]
}

/**
 * Reads files to the end, without sending anything.
 *
 * @param reading a name of `readings`; undefined: by what they look like
 * @param onCount receives how many memories were found so far
 * @throws Refusal `unsupported` for what is none of them, else for a file that cannot be read as what it is taken for
 */
export async function readFiles(
  given: readonly File[],
  reading: string | undefined,
  onCount: (count: number) => void,
): Promise<FoundLines> {
  const name = given.length === 1 ? given[0]!.name : `these ${given.length} files`
  const files = await listExportFiles(
    given.map(file => fileOf(file.name, () => Promise.resolve(file), file.lastModified)),
    keepUnpacked,
  )
  const found = reading ?? (await recognize(files))
  if (found === undefined)
    throw new Refusal('unsupported', `${name} is of no kind that can be read here`)
  if (found === 'upload' || found === 'import') return readLines(given, found)
  const source = openExport(formats[found]!, files, name)
  let count = 0
  const survey = await surveyExport(source, { hintFor, onLine: () => onCount(++count) })
  return {
    reading: found,
    name,
    ...describeExport(found, survey),
    count: survey.memories,
    unit: 'memory',
    sets: survey.sets.map(({ kind, bytes }) => ({
      kind,
      bytes,
      open: offset => lineBytes(source, kind, offset),
    })),
  }
}

/** The browser keeps what is large on its disk. */
async function keepUnpacked(file: ExportFile): Promise<Blob> {
  const parts: Blob[] = []
  for await (const chunk of file.open()) parts.push(new Blob([chunk as Uint8Array<ArrayBuffer>]))
  return new Blob(parts)
}

function hintFor(stranger: unknown): string | undefined {
  const guess = guessFormat(stranger)
  return guess && `It looks like an export of ${formats[guess]!.product}`
}

function describeExport(
  reading: string,
  { memories, conversations, undated, oldest, newest, losses }: Survey,
): Pick<FoundLines, 'summary' | 'notes'> {
  const { product, missing } = formats[reading]!
  const held = pluralize(memories, 'memory', 'memories')
  const said = conversations > 0 ? `${pluralize(conversations, 'conversation')}, ${held}` : held
  const span =
    oldest && newest ? ` from ${formatShortDay(oldest)} to ${formatShortDay(newest)}` : ''
  return {
    summary: `An export of ${product}: ${said}${span}.`,
    notes: [
      ...(undated > 0
        ? [`Without a time, so with that of today: ${undated.toLocaleString('en')}`]
        : []),
      ...losses.map(({ what, count }) => `Left out: ${what}: ${count.toLocaleString('en')}`),
      `Never in an import from ${product}: ${missing}`,
    ],
  }
}

async function readLines(given: readonly File[], kind: 'upload' | 'import'): Promise<FoundLines> {
  const [file, ...others] = given
  if (others.length > 0) throw new Refusal('invalid', 'Lines are read from one file at a time')
  const { name, size } = file!
  const open = (offset: number) => chunksOf(file!.slice(offset).stream())
  const limits = { lineBytesMax: Infinity, bytesMax: Infinity, linesMax: Infinity }
  let count = 0
  for await (const _ of splitLines(open(0), limits)) count++
  if (count === 0) throw new Refusal('invalid', `${name} is empty`)
  const what =
    kind === 'upload'
      ? `A file of lines: ${pluralize(count, 'line')}`
      : `An export of a vault: ${pluralize(count, 'memory', 'memories')}`
  const summary = `${what}, ${formatBytes(size)}.`
  return {
    reading: kind,
    name,
    summary,
    notes: [],
    count,
    unit: 'line',
    sets: [{ kind, bytes: size, open }],
  }
}
