import type { VaultClient } from '../client.ts'

/** Any JSON object. */
// oxlint-disable-next-line typescript/no-explicit-any -- as the frameworks have it
export type Fields = Record<string, any>

/** A memory that is a part of a text. */
export type TextRow = { id: string; text: string; metadata: Fields }

/**
 * A text in its latest wording, and where it stands. `metadata` is what names it, `data` what is kept beside the
 * words; times are milliseconds since 1970.
 */
export type LongText = {
  metadata: Fields
  text: string
  createdAt?: number
  updatedAt?: number
  data?: string | undefined
}

/** UTF-8 bytes, of which a token has at least one: a memory stays below the 512 tokens of a chunk. */
export const pieceBytesMax = 480
/** What the service takes: fields of metadata, characters of one, lines of an upload. */
export const fieldsMax = 16
const fieldCharactersMax = 256
const linesMax = 10_000
/** How often the end of an upload is asked for that takes longer than an answer may. */
const pollMs = 500

/**
 * Stores texts in one upload, and then removes what was there before: a put that breaks off loses nothing. The words
 * of a text are the memories, its `data` is in their metadata.
 *
 * Metadata, after the prefix: `stamp` when the text was written last and first, the part and the number of parts;
 * `data0` and so on.
 *
 * @param before the rows of earlier wordings, which `toTexts` has read
 */
export async function putTexts(
  vault: VaultClient,
  prefix: string,
  texts: readonly LongText[],
  before: readonly { id: string }[] = [],
): Promise<void> {
  let at = Math.max(Date.now(), ...texts.map(text => Math.trunc(text.updatedAt ?? 0) + 1))
  const tried = new Set<string>()
  for (;;) {
    const lines: Line[] = []
    for (const text of texts) lines.push(...toLines(prefix, text, at + lines.length))
    if ((await uploadLines(vault, lines)) === 0) break
    // The vault has the same words of the same millisecond: once more, at another time.
    for (const { metadata } of lines) tried.add(String(metadata[`${prefix}stamp`]))
    at += lines.length + 1 + Math.trunc(Math.random() * 1000)
  }
  const halves: TextRow[] = []
  for (const { metadata } of tried.size > 0 ? texts : []) {
    const rows = await listRows(vault, metadata)
    halves.push(...rows.filter(row => tried.has(String(row.metadata[`${prefix}stamp`]))))
  }
  await deleteRows(vault, [...before, ...halves])
}

export type Line = { content: string; role: string; timestamp: number; metadata: Fields }

/**
 * A text as lines to upload, a millisecond apart: so equal pieces are no repetition, and in order.
 *
 * @param written when it was written, with a fraction: another process may write this text in the same millisecond
 */
export function toLines(
  prefix: string,
  { metadata, text, createdAt, data }: LongText,
  at: number,
  written = at + Math.random(),
): Line[] {
  let pieces = splitText(text, pieceBytesMax)
  let beside = data ?? ''
  if (pieces.some(piece => piece.trim() === '')) {
    // The service takes no memory without words, and a text comes back as it was.
    beside ||= JSON.stringify(text)
    pieces = splitText(text.trim().replace(/\s+/g, ' ') || '(empty)', pieceBytesMax)
  }
  const chunks = toChunks(beside, fieldsMax - Object.keys(metadata).length - 1)
  const count = Math.max(pieces.length, chunks.length)
  return Array.from({ length: count }, (_, part) => ({
    content: pieces[part] ?? '(data)',
    role: 'user',
    timestamp: at + part,
    metadata: {
      ...metadata,
      [`${prefix}stamp`]: [written, createdAt || written, part, count].join(':'),
      ...toFields(prefix, chunks[part] ?? []),
    },
  }))
}

/** The fields of metadata that a text is, for one memory after another. */
export function toChunks(data: string, room: number): string[][] {
  const fields: string[] = []
  for (let rest = data; rest !== '';) {
    // No pair of surrogates is cut.
    const end = /[\uD800-\uDBFF]/.test(rest[fieldCharactersMax - 1] ?? '')
      ? fieldCharactersMax - 1
      : fieldCharactersMax
    fields.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  const count = Math.ceil(fields.length / room)
  return Array.from({ length: count }, (_, at) => fields.slice(at * room, (at + 1) * room))
}

export const toFields = (prefix: string, chunk: readonly string[]): Fields =>
  Object.fromEntries(chunk.map((text, at) => [`${prefix}data${at}`, text]))

/** What `toChunks` has made of a text, of the metadata of its memories in their order. */
export const joinChunks = (prefix: string, rows: readonly Fields[]): string =>
  rows
    .flatMap(fields => Array.from({ length: fieldsMax }, (_, at) => fields[`${prefix}data${at}`]))
    .join('')

type StoredPart = ReturnType<typeof readPart>
type StoredText = Required<Pick<LongText, 'createdAt' | 'updatedAt'>> & LongText

/** The texts whose parts are all there, in their latest wording; the one written last comes first. */
export function toTexts(prefix: string, rows: readonly TextRow[]): StoredText[] {
  const wordings = new Map<string, StoredPart[]>()
  for (const row of rows) {
    const part = readPart(prefix, row)
    const wording = JSON.stringify([part.name, part.at])
    wordings.set(wording, [...(wordings.get(wording) ?? []), part])
  }
  const latest = new Map<string, StoredText>()
  for (const parts of wordings.values()) {
    const { name, at, since, parts: count } = parts[0]!
    if (parts.length !== count) continue
    const key = JSON.stringify(name)
    if ((latest.get(key)?.updatedAt ?? 0) >= at) continue
    parts.sort((a, b) => a.part - b.part)
    latest.set(key, {
      metadata: Object.fromEntries(name),
      text: parts.map(({ text }) => text).join(''),
      createdAt: since,
      updatedAt: at,
      data:
        joinChunks(
          prefix,
          parts.map(({ metadata }) => metadata),
        ) || undefined,
    })
  }
  return [...latest.values()].sort((a, b) => b.updatedAt - a.updatedAt)
}

/** Which part of which text a memory is; also of the first form, with a head, brackets and counters apart. */
function readPart(prefix: string, { text, metadata }: TextRow) {
  const own = new RegExp(`^${prefix}(?:stamp|data\\d+|at|since|parts?)$`)
  // In an order that does not depend on the answer.
  const name = Object.entries(metadata)
    .filter(([field]) => !own.test(field))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const stamp = metadata[`${prefix}stamp`] as string | undefined
  const names = ['at', 'since', 'part', 'parts']
  const numbers = stamp?.split(':') ?? names.map(field => metadata[prefix + field] as number)
  const [at, since, part, parts] = numbers.map(Number) as [number, number, number, number]
  const words = stamp === undefined ? text.slice(text.indexOf('\n[') + 2, -1) : text
  return {
    name,
    at,
    since,
    part,
    parts,
    text: words,
    metadata: stamp === undefined ? {} : metadata,
  }
}

/** All memories of the core with this metadata. */
export async function listRows(vault: VaultClient, metadata: Fields): Promise<TextRow[]> {
  const rows: TextRow[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { metadata: JSON.stringify(metadata), limit: 200, ...(cursor && { cursor }) }
    const page = await vault.call('GET /v1/memory/list', { query })
    for (const { memory_id: id, text, metadata: fields = {} } of page.items) {
      rows.push({ id, text, metadata: fields })
    }
    cursor = page.next_cursor
  }
  return rows
}

/**
 * Stores lines, and resolves when they are there. Needs a card on file, as every upload does.
 *
 * @param session a session in place of the core of the vault
 * @returns how many the vault had already: the same text of the same millisecond
 * @throws RangeError before anything is sent, when an upload cannot have so many lines, and Error when the service
 *   gave the upload up
 */
export async function uploadLines(
  vault: VaultClient,
  lines: readonly Line[],
  session?: string,
): Promise<number> {
  if (lines.length > linesMax) {
    throw new RangeError(
      `It is too long to be stored: ${lines.length} memories, of which an upload has ${linesMax}`,
    )
  }
  let answer: object = await vault.call('POST /v1/memory/upload', {
    body: lines.map(line => `${JSON.stringify(line)}\n`).join(''),
    ...(session !== undefined && { headers: { 'x-session-id': session } }),
  })
  while ('operation_id' in answer && 'status' in answer && answer.status === 'processing') {
    await new Promise(resolve => setTimeout(resolve, pollMs))
    const params = { id: String(answer.operation_id) }
    const operation = await vault.call('GET /v1/operations/:id', { params })
    const hasEnded = ['done', 'failed', 'cancelled'].includes(operation.state)
    if (hasEnded) answer = operation.outcome?.body ?? operation
  }
  const { status, stats } = answer as { status?: string; stats?: { skipped: number } }
  if (status !== 'complete' || !stats) {
    throw new Error(`It was not stored: ${JSON.stringify(answer)}`)
  }
  return stats.skipped
}

/** Runs tasks one after another, in the order of their calls. */
export function createQueue(): <Result>(task: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return task => {
    const next = last.then(task, task)
    last = next
    return next
  }
}

export async function deleteRows(vault: VaultClient, rows: readonly { id: string }[]) {
  for (let at = 0; at < rows.length; at += 500) {
    const ids = rows.slice(at, at + 500).map(({ id }) => id)
    await vault.call('POST /v1/memory/delete-ids', { body: { ids } })
  }
}

/** Pieces of a text, in order, none longer than so many UTF-8 bytes, between words where there are any. */
export function splitText(text: string, bytesMax: number): string[] {
  const pieces: string[] = []
  let [start, blank, bytes, at] = [0, 0, 0, 0]
  for (const character of text) {
    const size = byteLength(character)
    if (bytes + size > bytesMax) {
      const end = blank - start > (at - start) / 2 ? blank : at
      pieces.push(text.slice(start, end))
      ;[start, bytes] = [end, byteLength(text.slice(end, at))]
    }
    bytes += size
    at += character.length
    if (/\s/.test(character)) blank = at
  }
  return [...pieces, text.slice(start)]
}

const encoder = new TextEncoder()
export const byteLength = (text: string): number => encoder.encode(text).length
