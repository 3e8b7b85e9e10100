import { createHash, type Hash } from 'node:crypto'
import { Losses, type ImportLine } from '#scripts/clients/import/draft.ts'
import { listExportFiles, type ExportFile } from '#scripts/clients/import/export-files.ts'
import { formats, guessFormat } from '#scripts/clients/import/formats.ts'
import type { Format } from '#scripts/clients/import/formats/format.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The lines of one kind. */
export type LineSet = {
  kind: ImportLine['kind']
  lines: number
  bytes: number
  /** Hash of all lines: the same for the same export. */
  digest: string
}

/** What an export holds. */
export type Survey = {
  /** Restored lines first, so that what they cover is there. Without empty ones. */
  sets: LineSet[]
  memories: number
  undated: number
  /** ISO 8601. */
  oldest: string | undefined
  newest: string | undefined
  losses: { what: string; count: number }[]
}

/** An export that can be read as often as needed. */
export type OpenExport = { format: Format; files: ExportFile[] }

/**
 * Opens an export: lists the files that its format reads.
 *
 * @throws Refusal `invalid` when there is none; as `listExportFiles`.
 */
export async function openExport(from: string, path: string): Promise<OpenExport> {
  const format = formats[from]!
  const files = await listExportFiles(path)
  // A single file is taken as it is, whatever it is called.
  const only = files.length === 1 && path.endsWith(files[0]!.name) ? files : undefined
  const found = only ?? files.filter(({ name }) => format.isExportFile(name))
  if (found.length > 0) return { format, files: found }
  throw new Refusal(
    'invalid',
    `${path} has no file of an export of ${format.product}`,
    `Give ${format.file}`,
  )
}

/**
 * Reads a whole export.
 *
 * @throws Refusal `invalid` for a file that is no export of this format, or has no memory.
 */
export async function surveyExport({ format, files }: OpenExport, path: string): Promise<Survey> {
  const losses = new Losses()
  const counters = { import: newCounter(), upload: newCounter() }
  let stranger: unknown
  let undated = 0
  let [oldest, newest]: (string | undefined)[] = []
  const onStranger = (value: unknown): void => {
    stranger ??= value
    losses.add(`values that are not of ${format.product}`)
  }
  for await (const { kind, text, timestamp } of format.read(files, losses, onStranger)) {
    const counter = counters[kind]
    counter.lines++
    counter.bytes += Buffer.byteLength(text) + 1
    counter.hash.update(text)
    if (timestamp === undefined) undated++
    else {
      if (oldest === undefined || timestamp < oldest) oldest = timestamp
      if (newest === undefined || timestamp > newest) newest = timestamp
    }
  }
  const sets = (['import', 'upload'] as const)
    .map(kind => ({ kind, ...toSet(counters[kind]) }))
    .filter(({ lines }) => lines > 0)
  const memories = sets.reduce((sum, { lines }) => sum + lines, 0)
  if (memories === 0) throw nothingFound({ format, path, stranger })
  return { sets, memories, undated, oldest, newest, losses: losses.list() }
}

type Counter = { lines: number; bytes: number; hash: Hash }

const newCounter = (): Counter => ({ lines: 0, bytes: 0, hash: createHash('sha256') })

const toSet = ({ lines, bytes, hash }: Counter): Omit<LineSet, 'kind'> => ({
  lines,
  bytes,
  digest: hash.digest('base64url'),
})

function nothingFound({
  format,
  path,
  stranger,
}: {
  format: Format
  path: string
  stranger: unknown
}): Refusal {
  const guess = guessFormat(stranger)
  const hint = guess
    ? `It looks like an export of ${formats[guess]!.product}: --from ${guess}`
    : `Give ${format.file}`
  return new Refusal('invalid', `${path} has no memory of ${format.product}`, hint)
}

/** Yields the bytes of the lines of one kind from an offset on, in pieces of about 64 KiB. */
export async function* lineBytes(
  { format, files }: OpenExport,
  kind: ImportLine['kind'],
  offset: number,
): AsyncGenerator<Uint8Array> {
  let before = offset
  let pieces: Buffer[] = []
  let bytes = 0
  for await (const line of format.read(files, new Losses(), () => {})) {
    if (line.kind !== kind) continue
    const piece = Buffer.from(`${line.text}\n`)
    if (before >= piece.length) {
      before -= piece.length
      continue
    }
    pieces.push(piece.subarray(before))
    bytes += piece.length - before
    before = 0
    if (bytes < 64 * 1024) continue
    yield Buffer.concat(pieces)
    pieces = []
    bytes = 0
  }
  yield Buffer.concat(pieces)
}
