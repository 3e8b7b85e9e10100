import { parse } from 'yaml'
import type { Draft, ImportLine, Losses } from '#api/import/draft.ts'
import type { ExportFile } from '#api/import/export-files.ts'
import { asObject, asText, asTime, isObject, type Fields } from '#api/import/formats/fields.ts'
import { toLines, type Format } from '#api/import/formats/format.ts'
import { isHidden, readText } from '#api/import/formats/text-files.ts'

/** The field of the front matter for what the format has no word for. */
export const vaultField = 'memory_vault'

/**
 * A bundle of Open Knowledge Format: a folder of markdown documents with front matter. Documents written by
 * this service come back as the memories they were, others become one memory each.
 */
export const okf: Format = {
  product: 'Open Knowledge Format',
  file: 'the folder of the bundle, or a zip of it',
  missing: 'links between documents as links, and images',
  // index.md and log.md are reserved; hidden folders belong to programs.
  isExportFile: name =>
    /\.md$/i.test(name) && !/(?:^|\/)(?:index|log)\.md$/i.test(name) && !isHidden(name),
  recognizes: () => false,
  async *read(files, losses, onStranger) {
    for (const file of files.toSorted((one, other) => tierOf(one) - tierOf(other))) {
      const text = await readText(file)
      if (text === undefined) losses.add('documents of more than 8 MiB')
      else if (text.includes('\0')) onStranger(file.name)
      else yield* documentLines(text, file.name, losses)
    }
  },
}

/** Orders documents by tier: a reflection is imported after the memories it covers. */
function tierOf({ name }: ExportFile): number {
  if (/(?:^|\/)high-level-reflections\//.test(name)) return 3
  return /(?:^|\/)reflections\//.test(name) ? 2 : 1
}

function* documentLines(text: string, name: string, losses: Losses): Generator<ImportLine> {
  const { fields, body } = readDocument(text, losses)
  const exported = fields[vaultField]
  if (isObject(exported) && 'id' in exported && 'tier' in exported) {
    // One line break on either side of the text was added when it was written.
    const content = body.replace(/^\r?\n/, '').replace(/\r?\n$/, '')
    yield {
      kind: 'import',
      timestamp: asTime(exported['timestamp']),
      text: JSON.stringify({ ...exported, content }),
    }
  } else yield* toLines([toDraft(fields, body, name)], losses)
}

function readDocument(text: string, losses: Losses): MarkdownDocument {
  try {
    const document = parseMarkdown(text)
    if (document) return document
    losses.add('front matter: documents without any')
  } catch {
    losses.add('front matter that is not read: its documents are stored whole')
  }
  return { fields: {}, body: text }
}

/** A markdown document: the fields of its front matter, and what follows it byte for byte. */
type MarkdownDocument = { fields: Fields; body: string }

/**
 * Splits a markdown document from its YAML front matter. Whole numbers beyond 2^53 become texts with all digits.
 *
 * @returns undefined for a document without front matter
 * @throws Error for front matter that is no mapping of YAML.
 */
export function parseMarkdown(text: string): MarkdownDocument | undefined {
  const opening = /^\uFEFF?---[ \t]*\r?\n/.exec(text)
  if (!opening) return undefined
  const rest = text.slice(opening[0].length)
  const closing = /^---[ \t]*(?:\r?\n|$)/m.exec(rest)
  if (!closing) return undefined
  const options = { intAsBigInt: true, uniqueKeys: false, logLevel: 'error' } as const
  const fields: unknown = parse(rest.slice(0, closing.index), exactNumber, options) ?? {}
  if (!isObject(fields)) throw new SyntaxError('front matter is no mapping')
  return { fields, body: rest.slice(closing.index + closing[0].length) }
}

const exactNumber = (_name: unknown, value: unknown): unknown => {
  if (typeof value !== 'bigint') return value
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
}

function toDraft(fields: Fields, body: string, name: string): Draft {
  const { title, description, generated, timestamp, memory_vault: _, ...rest } = fields
  const text = body.trim()
  const head = [asText(title), asText(description)].filter(
    part => part !== undefined && !text.includes(part),
  )
  return {
    content: [...head, text].join('\n\n'),
    timestamp: asTime(asObject(generated)['at'], timestamp, rest['date']),
    metadata: { source: 'okf', document: name.replace(/\.md$/i, ''), title, ...rest },
  }
}
