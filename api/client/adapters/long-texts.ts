import type { VaultClient } from '../client.ts'

/** Any JSON object. */
// oxlint-disable-next-line typescript/no-explicit-any -- as the frameworks have it
export type Fields = Record<string, any>

/** A memory that is a part of a text. */
export type TextRow = { id: string; text: string; metadata: Fields }

/** A text in its latest wording, and where it stands. `metadata` is what names it, without the parts. */
export type LongText = { metadata: Fields; text: string; createdAt: number; updatedAt: number }

/** UTF-8 bytes, of which a token has at least one: a memory of both stays below the 512 tokens of a chunk. */
const partBytesMax = 320
const pathBytesMax = 144

/**
 * A text as lines to upload, each a part of it. Each part has a head that no other has, so that none is left out
 * as known.
 *
 * Metadata, after the prefix: `at` and `since` when the text was written last and first, `part` and `parts`.
 *
 * @param path stands at the beginning of each part, so that a search for it finds the text
 */
export function toLines(
  prefix: string,
  path: string,
  { metadata, text, known }: { metadata: Fields; text: string; known?: LongText | undefined },
): string[] {
  const at = Math.max(Date.now(), Math.trunc(known?.updatedAt ?? 0) + 1)
  const parts = splitText(text, partBytesMax)
  const wording = at.toString(36) + Math.random().toString(36).slice(2, 10)
  const line = cutPath(path)
  const named = {
    ...metadata,
    // With a fraction: another process may write this text in the same millisecond.
    [`${prefix}at`]: at + Math.random(),
    [`${prefix}since`]: known?.createdAt ?? at,
    [`${prefix}parts`]: parts.length,
  }
  return parts.map((piece, part) =>
    JSON.stringify({
      content: `${line} ${wording}.${part}\n[${piece}]`,
      role: 'assistant',
      timestamp: at,
      metadata: { ...named, [`${prefix}part`]: part },
    }),
  )
}

/** The texts whose parts are all there, in their latest wording; the one written last comes first. */
export function toTexts(prefix: string, rows: readonly TextRow[]): LongText[] {
  const wordings = new Map<string, TextRow[]>()
  for (const row of rows) {
    const name = JSON.stringify([nameOf(prefix, row.metadata), row.metadata[`${prefix}at`]])
    wordings.set(name, [...(wordings.get(name) ?? []), row])
  }
  const latest = new Map<string, LongText>()
  for (const parts of wordings.values()) {
    const { metadata } = parts[0]!
    if (parts.length !== Number(metadata[`${prefix}parts`])) continue
    const ordered = [...parts].sort(
      (a, b) => a.metadata[`${prefix}part`] - b.metadata[`${prefix}part`],
    )
    const text: LongText = {
      metadata,
      text: ordered.map(({ text }) => text.slice(text.indexOf('\n[') + 2, -1)).join(''),
      createdAt: Number(metadata[`${prefix}since`]),
      updatedAt: Number(metadata[`${prefix}at`]),
    }
    const name = JSON.stringify(nameOf(prefix, metadata))
    const known = latest.get(name)
    if (!known || known.updatedAt < text.updatedAt) latest.set(name, text)
  }
  return [...latest.values()].sort((a, b) => b.updatedAt - a.updatedAt)
}

/** The fields of metadata that name a text, in an order that does not depend on the answer. */
const nameOf = (prefix: string, metadata: Fields): [string, unknown][] => {
  const counters = new Set(['at', 'since', 'part', 'parts'].map(name => prefix + name))
  return Object.entries(metadata)
    .filter(([name]) => !counters.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
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
 * Stores lines. Needs a card on file, as every upload does.
 *
 * @param session a session in place of the core of the vault
 * @returns how many the vault had already: the same text of the same millisecond
 * @throws Error when not all of them are there after the 25 seconds that an upload may take
 */
export async function uploadLines(
  vault: VaultClient,
  lines: readonly string[],
  session?: string,
): Promise<number> {
  const answer = await vault.call('POST /v1/memory/upload', {
    body: lines.map(line => `${line}\n`).join(''),
    ...(session !== undefined && { headers: { 'x-session-id': session } }),
  })
  if (!('stats' in answer) || answer.status !== 'complete') {
    throw new Error(`It was not stored: ${JSON.stringify(answer)}`)
  }
  return answer.stats.skipped
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

/** Pieces of a text, in order, none longer than so many UTF-8 bytes; at least one. */
export function splitText(text: string, bytesMax: number): string[] {
  const pieces: string[] = []
  let [piece, bytes] = ['', 0]
  for (const character of text) {
    const size = byteLength(character)
    if (bytes + size > bytesMax) {
      pieces.push(piece)
      ;[piece, bytes] = ['', 0]
    }
    piece += character
    bytes += size
  }
  return [...pieces, piece]
}

/** A path on one line, without its beginning where it is long: metadata has it whole. */
function cutPath(path: string): string {
  const line = path.replace(/\s+/g, ' ')
  if (byteLength(line) <= pathBytesMax) return line
  const reversed = Array.from(line).reverse().join('')
  return Array.from(splitText(reversed, pathBytesMax)[0]!).reverse().join('')
}

const encoder = new TextEncoder()
export const byteLength = (text: string): number => encoder.encode(text).length
