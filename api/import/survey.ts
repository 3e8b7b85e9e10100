import { Losses, type ImportLine } from '#api/import/draft.ts'
import type { ExportFile } from '#api/import/export-files.ts'
import type { Format } from '#api/import/formats/format.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The lines of one kind. */
export type LineSet = { kind: ImportLine['kind']; lines: number; bytes: number }

/** What an export holds. */
export type Survey = {
  /** Restored lines first, so that what they cover is there. Without empty ones. */
  sets: LineSet[]
  memories: number
  /** 0 where the export names none. */
  conversations: number
  undated: number
  /** ISO 8601. */
  oldest: string | undefined
  newest: string | undefined
  losses: { what: string; count: number }[]
}

/** An export that can be read as often as needed; `name` is for errors. */
export type OpenExport = {
  format: Format
  files: readonly ExportFile[]
  name: string
  /** The names of files that the format does not read. */
  others: readonly string[]
}

/**
 * Opens an export: chooses the files that its format reads.
 *
 * @throws Refusal `invalid` when there is none
 */
export function openExport(format: Format, files: readonly ExportFile[], name: string): OpenExport {
  // A single file is taken as it is, whatever it is called.
  const only = files.length === 1 && name.endsWith(files[0]!.name) ? files : undefined
  const found = only ?? files.filter(file => format.isExportFile(file.name))
  const others = files.filter(file => !found.includes(file)).map(file => file.name)
  if (found.length > 0) return { format, files: found, name, others }
  throw new Refusal(
    'invalid',
    `${name} has no file of an export of ${format.product}`,
    `Give ${format.file}`,
  )
}

type SurveyOptions = {
  /** What to say instead of which file to give, by the first value that is not of the format. */
  hintFor(stranger: unknown): string | undefined
  /** Is called with each line. */
  onLine(line: ImportLine): void
}

/**
 * Reads a whole export.
 *
 * @throws Refusal `invalid` for a file that is no export of this format, or has no memory.
 */
export async function surveyExport(
  { format, files, name, others }: OpenExport,
  { hintFor, onLine }: SurveyOptions,
): Promise<Survey> {
  const losses = new Losses()
  const encoder = new TextEncoder()
  const counts = { import: { lines: 0, bytes: 0 }, upload: { lines: 0, bytes: 0 } }
  const conversations = new Set<string>()
  let stranger: unknown
  let undated = 0
  let [oldest, newest]: (string | undefined)[] = []
  const onStranger = (value: unknown): void => {
    stranger ??= value
    losses.add(`values that are not of ${format.product}`)
  }
  for await (const line of format.read(files, losses, onStranger)) {
    const { kind, text, timestamp, conversation } = line
    onLine(line)
    counts[kind].lines++
    counts[kind].bytes += encoder.encode(text).length + 1
    if (conversation !== undefined) conversations.add(conversation)
    if (timestamp === undefined) undated++
    else {
      if (oldest === undefined || timestamp < oldest) oldest = timestamp
      if (newest === undefined || timestamp > newest) newest = timestamp
    }
  }
  for (const other of others) losses.add(`files that are not read: ${endingOf(other)}`)
  const sets = (['import', 'upload'] as const)
    .map(kind => ({ kind, ...counts[kind] }))
    .filter(({ lines }) => lines > 0)
  const memories = sets.reduce((sum, { lines }) => sum + lines, 0)
  if (memories === 0) {
    const hint = hintFor(stranger) ?? `Give ${format.file}`
    throw new Refusal('invalid', `${name} has no memory of ${format.product}`, hint)
  }
  const found = { conversations: conversations.size, undated, oldest, newest }
  return { sets, memories, ...found, losses: losses.list() }
}

/** What a file ends with, such as `.png`; its name where it has no ending. */
const endingOf = (name: string): string =>
  /[^/](\.[a-z][a-z\d]{0,7})$/i.exec(name)?.[1]?.toLowerCase() ??
  name.split('/').at(-1)!.slice(0, 60)

/** Yields the bytes of the lines of one kind from an offset on, in pieces of about 64 KiB. */
export async function* lineBytes(
  { format, files }: OpenExport,
  kind: ImportLine['kind'],
  offset: number,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let before = offset
  let text = ''
  const piece = (): Uint8Array => {
    const bytes = encoder.encode(text)
    const rest = bytes.subarray(Math.min(before, bytes.length))
    before -= bytes.length - rest.length
    text = ''
    return rest
  }
  for await (const line of format.read(files, new Losses(), () => {})) {
    if (line.kind !== kind) continue
    text += `${line.text}\n`
    if (text.length >= 64 * 1024) yield piece()
  }
  yield piece()
}
