import type { ExportFile } from '#api/import/export-files.ts'
import { formats, guessFormat } from '#api/import/formats.ts'
import { isObject } from '#api/import/formats/fields.ts'
import { readJsonValues } from '#api/import/json-values.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Files that are looked into for a format: an archive may have thousands of the kind that many formats read. */
const filesLookedInto = 20

const uploadFields = new Set(['content', 'role', 'timestamp', 'expires_at', 'metadata'])

/**
 * Tells what files are by the first value of each: `upload` for lines as an upload takes them, `import` for an export
 * of a vault, else the name of a format; undefined for none of these.
 *
 * @throws Refusal `invalid` for own lines in a list, and as reading an archive does
 */
export async function recognize(files: readonly ExportFile[]): Promise<string | undefined> {
  const looked = new Map<ExportFile, unknown>()
  const firstOf = async (file: ExportFile): Promise<unknown> => {
    if (!looked.has(file)) looked.set(file, await firstValue(file))
    return looked.get(file)
  }
  const own = files.length === 1 ? ownKind(await firstOf(files[0]!)) : undefined
  if (own !== undefined && (await beginsList(files[0]!))) {
    throw new Refusal(
      'invalid',
      `${files[0]!.name} is a list; a file of lines has an object on each line`,
      `jq -c '.[]' ${files[0]!.name} > lines.jsonl makes lines of it`,
    )
  }
  if (own !== undefined) return own
  for (const [name, format] of Object.entries(formats)) {
    const read = files.length === 1 ? files : files.filter(file => format.isExportFile(file.name))
    for (const file of read.slice(0, filesLookedInto)) {
      if (guessFormat(await firstOf(file), { [name]: format })) return name
    }
  }
  for (const [name, { recognizesText }] of Object.entries(formats)) {
    for (const file of recognizesText ? files.slice(0, filesLookedInto) : []) {
      if (recognizesText!(file.name, await beginning(file))) return name
    }
  }
  return undefined
}

function ownKind(value: unknown): 'upload' | 'import' | undefined {
  if (!isObject(value) || typeof value['content'] !== 'string') return undefined
  if ('id' in value && 'tier' in value) return 'import'
  return Object.keys(value).every(name => uploadFields.has(name)) ? 'upload' : undefined
}

async function firstValue(file: ExportFile): Promise<unknown> {
  try {
    for await (const value of readJsonValues(file.open(), file.name)) return value
  } catch (error) {
    // What is no JSON is none of the formats.
    if (!(error instanceof Refusal)) throw error
  }
  return undefined
}

const beginsList = async (file: ExportFile): Promise<boolean> =>
  (await beginning(file)).startsWith('[')

/** The first characters of a file that are no blanks. */
async function beginning(file: ExportFile): Promise<string> {
  for await (const chunk of file.open()) {
    const text = new TextDecoder().decode(chunk).trimStart()
    if (text !== '') return text
  }
  return ''
}
