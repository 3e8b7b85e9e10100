/** A memory of a file, as the service takes it. */
export type Seed = {
  text: string
  tags?: string[]
  confidence?: number
  metadata?: Record<string, unknown>
}

/** Lines count from 1. A record of several lines has its first one. */
type SeedLine = { line: number } & ({ seed: Seed } | { fault: string })

export type SeedFile = {
  format: 'json' | 'jsonl' | 'csv' | 'text'
  lines: SeedLine[]
  /** Fields and columns that are not read, each once. */
  ignored: string[]
}

/** The contract's limits: characters of a text, tags of a memory, characters of a tag. */
const limits = { text: 32_000, tags: 50, tag: 100 }
const fields = new Set(['text', 'tags', 'confidence', 'metadata'])

/**
 * Reads memories out of a file: JSON (an array), JSON lines, CSV with a header (`text`, and `tags` with `;` or `,`
 * between them), or plain text with a memory on each line. The name decides, and the content where it does not.
 */
export function parseSeedFile(name: string, content: string): SeedFile {
  const text = content.replace(/^\uFEFF/, '')
  const format = formatOf(name.toLowerCase(), text)
  const ignored = new Set<string>()
  return { format, lines: readers[format](text, ignored), ignored: [...ignored] }
}

function formatOf(name: string, text: string): SeedFile['format'] {
  const start = text.trimStart()
  if (start.startsWith('[') && !/\.(?:csv|tsv|txt|md)$/.test(name)) return 'json'
  if (/\.(?:jsonl|ndjson|json)$/.test(name) || start.startsWith('{')) return 'jsonl'
  if (/\.(?:csv|tsv)$/.test(name) || isHeader(start.split('\n', 1)[0]!)) return 'csv'
  return 'text'
}

const readers: Record<SeedFile['format'], (text: string, ignored: Set<string>) => SeedLine[]> = {
  json(text, ignored) {
    const parsed = parseJson(text)
    if (!Array.isArray(parsed)) return [{ line: 1, fault: 'the file is no JSON array' }]
    return parsed.map((value, index) => toLine(index + 1, value, ignored))
  },
  jsonl: (text, ignored) =>
    filledLines(text).map(([line, words]) => {
      const value = parseJson(words)
      return value === undefined ? { line, fault: 'it is no JSON' } : toLine(line, value, ignored)
    }),
  csv: readCsv,
  text: text => filledLines(text).map(([line, words]) => toLine(line, words.trim(), new Set())),
}

const filledLines = (text: string): [line: number, words: string][] =>
  text
    .split('\n')
    .map((words, index): [number, string] => [index + 1, words])
    .filter(([, words]) => words.trim() !== '')

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A memory of a parsed value: an object with its fields, or a text alone. */
function toLine(line: number, value: unknown, ignored: Set<string>): SeedLine {
  if (typeof value === 'string') return toLine(line, { text: value }, ignored)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { line, fault: 'it is neither an object nor a text' }
  }
  const { text, tags, confidence, metadata } = value as Record<string, unknown>
  const fault = faultOf({ text, tags, confidence, metadata })
  if (fault !== undefined) return { line, fault }
  for (const name of Object.keys(value)) if (!fields.has(name)) ignored.add(name)
  const given = Object.entries({ text, tags, confidence, metadata }).filter(
    ([, one]) => one !== undefined && one !== null,
  )
  return { line, seed: Object.fromEntries(given) as Seed }
}

/** Why a memory cannot be stored; the service decides about the rest. */
function faultOf({
  text,
  tags,
  confidence,
  metadata,
}: Record<string, unknown>): string | undefined {
  if (typeof text !== 'string') return 'it has no text'
  if (text.trim() === '') return 'its text is empty'
  if (text.length > limits.text) return `its text is longer than ${limits.text} characters`
  if (tags !== undefined && tags !== null) {
    if (!Array.isArray(tags)) return 'tags is no list'
    if (tags.length > limits.tags) return `it has more than ${limits.tags} tags`
    const wrong = tags.find(tag => !isTag(tag)) as unknown
    if (wrong !== undefined) return `${JSON.stringify(wrong)} is no tag`
  }
  if (confidence !== undefined && confidence !== null) {
    const isShare = typeof confidence === 'number' && confidence >= 0 && confidence <= 1
    if (!isShare) return 'confidence is no number from 0 to 1'
  }
  if (typeof metadata !== 'object' && metadata !== undefined) return 'metadata is no object'
  return undefined
}

const isTag = (tag: unknown): boolean =>
  typeof tag === 'string' &&
  tag.trim() !== '' &&
  tag.trim() !== '*' &&
  tag.length <= limits.tag &&
  !/\p{Cc}/u.test(tag)

const delimiters = [',', ';', '\t']

const toColumns = (header: string, delimiter: string): string[] =>
  header.split(delimiter).map(name => name.trim().replaceAll('"', '').toLowerCase())

const isHeader = (header: string): boolean =>
  delimiters.some(delimiter => {
    const columns = toColumns(header, delimiter)
    return columns.includes('text') && columns.every(name => fields.has(name))
  })

function readCsv(content: string, ignored: Set<string>): SeedLine[] {
  const header = content.split('\n', 1)[0]!
  const delimiter = delimiters.find(one => toColumns(header, one).includes('text'))
  if (delimiter === undefined) return [{ line: 1, fault: 'its header has no column “text”' }]
  const columns = toColumns(header, delimiter)
  const textAt = columns.indexOf('text')
  const tagsAt = columns.indexOf('tags')
  for (const name of columns) if (name !== 'text' && name !== 'tags') ignored.add(name)
  return csvRecords(content, delimiter)
    .slice(1)
    .filter(({ cells }) => cells.some(cell => cell.trim() !== ''))
    .map(({ line, cells, isOpen }) => {
      if (isOpen) return { line, fault: 'a quote that begins in it is not closed' }
      if (cells.length > columns.length) {
        return { line, fault: `it has ${cells.length} cells, and the header ${columns.length}` }
      }
      const tags = (cells[tagsAt] ?? '').split(/[;,]/).map(tag => tag.trim())
      return toLine(line, { text: cells[textAt], tags: tags.filter(tag => tag !== '') }, ignored)
    })
}

/** `isOpen`: a quote in it is not closed. */
type CsvRecord = { line: number; cells: string[]; isOpen: boolean }

/** The records of a CSV file (RFC 4180): cells in quotes may hold the delimiter, line ends and doubled quotes. */
function csvRecords(text: string, delimiter: string): CsvRecord[] {
  const records: CsvRecord[] = []
  let line = 1
  let record: CsvRecord = { line, cells: [], isOpen: false }
  let cell = ''
  let isQuoted = false
  const endRecord = (): void => {
    record.cells.push(cell.replace(/\r$/, ''))
    records.push(record)
    cell = ''
  }
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (character === '\n') line++
    if (isQuoted) {
      if (character !== '"') cell += character
      else if (text[at + 1] === '"') cell += text[++at]!
      else isQuoted = false
    } else if (character === '"' && cell === '') isQuoted = true
    else if (character === delimiter) {
      record.cells.push(cell)
      cell = ''
    } else if (character === '\n') {
      endRecord()
      record = { line, cells: [], isOpen: false }
    } else cell += character
  }
  record.isOpen = isQuoted
  if (isQuoted || cell !== '' || record.cells.length > 0) endRecord()
  return records
}

/** What one request may hold: memories, and bytes of JSON below the 2 MiB that the service reads. */
const batchMax = { items: 500, bytes: 1_800_000 }

/** Splits the memories of a file into requests, the same way each time. */
export function toSeedBatches<Item extends { seed: Seed }>(items: readonly Item[]): Item[][] {
  const batches: Item[][] = []
  let bytes = Infinity
  const encoder = new TextEncoder()
  for (const item of items) {
    const size = encoder.encode(JSON.stringify(item.seed)).length + 1
    bytes += size
    if (bytes > batchMax.bytes || batches.at(-1)!.length >= batchMax.items) {
      batches.push([])
      bytes = size
    }
    batches.at(-1)!.push(item)
  }
  return batches
}
