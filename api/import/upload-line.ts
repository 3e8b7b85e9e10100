import type { Draft, ImportLine, Losses } from '#api/import/draft.ts'

/** Characters of a line: its JSON stays below 256 KiB even where every character is escaped. */
const lineCharactersMax = 40_000

/** Limits of metadata; one further field tells the origin. */
const [fieldsMax, keyCharactersMax, valueCharactersMax] = [15, 64, 256]

/** Yields the lines of an upload for a draft: several for a very long text, none for an empty one. */
export function* toUploadLines(draft: Draft, losses: Losses): Generator<ImportLine> {
  const text = draft.content.toWellFormed().replaceAll('\0', '').trim()
  if (text === '') {
    losses.add('messages without text')
    return
  }
  const { expiresAt } = draft
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()) {
    losses.add('memories that have expired')
    return
  }
  const metadata = toMetadata(draft.metadata, losses)
  const { conversation } = draft.metadata
  const start = draft.timestamp === undefined ? undefined : Date.parse(draft.timestamp)
  for (const [index, content] of splitText(text).entries()) {
    // A millisecond apart, so that pieces stay in order.
    const timestamp = start === undefined ? undefined : new Date(start + index).toISOString()
    const line = { content, role: draft.role ?? 'user', timestamp, expires_at: expiresAt, metadata }
    const of = typeof conversation === 'string' && { conversation }
    yield { kind: 'upload', timestamp, text: JSON.stringify(line), ...of }
  }
}

/** Splits a text into pieces of at most 40,000 characters that end at a line, a word, or between characters. */
function splitText(text: string): string[] {
  const pieces: string[] = []
  for (let rest = text; rest !== '';) {
    const end = rest.length <= lineCharactersMax ? rest.length : pieceEnd(rest)
    const piece = rest.slice(0, end).trim()
    if (piece !== '') pieces.push(piece)
    rest = rest.slice(end)
  }
  return pieces
}

function pieceEnd(text: string): number {
  for (const space of ['\n', ' ']) {
    const at = text.lastIndexOf(space, lineCharactersMax)
    if (at > lineCharactersMax / 2) return at
  }
  const isHighSurrogate = (text.charCodeAt(lineCharactersMax - 1) & 0xfc00) === 0xd800
  return isHighSurrogate ? lineCharactersMax - 1 : lineCharactersMax
}

/** Makes metadata that the service takes: flat, at most 16 fields, `origin` among them, texts of at most 256 characters, numbers up to 2^53. */
function toMetadata(
  given: Readonly<Record<string, unknown>>,
  losses: Losses,
): Record<string, string | number | boolean> {
  const fields: Record<string, string | number | boolean> = {}
  for (const [name, given_] of Object.entries(given)) {
    const value = toMetadataValue(given_, losses)
    const key = name.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, keyCharactersMax)
    if (value === undefined || key === '') continue
    if (Object.keys(fields).length === fieldsMax) losses.add('metadata fields beyond 15')
    else fields[key] = value
  }
  return { ...fields, origin: 'import' }
}

function toMetadataValue(value: unknown, losses: Losses): string | number | boolean | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return undefined
    return Math.abs(value) > Number.MAX_SAFE_INTEGER ? String(value) : value
  }
  if (Array.isArray(value) && value.every(item => typeof item === 'string'))
    return toMetadataValue(value.join(', '), losses)
  if (typeof value !== 'string') {
    losses.add('metadata fields with nested values')
    return undefined
  }
  const characters = Array.from(value.toWellFormed().replaceAll('\0', '').normalize('NFC'))
  if (characters.length > valueCharactersMax) losses.add('ends of long metadata texts')
  return characters.slice(0, valueCharactersMax).join('')
}
