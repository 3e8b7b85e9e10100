import {
  forEachElement,
  forEachMember,
  kindAt,
  createNameMatcher,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import { contentParts, type Message } from '#shared/domain/message-content.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/** Most parts of one message that are read, as in `POST /v1/memory/ingest`. */
const partsMax = 10_000

/** Longest name of a part's type. */
const typeBytesMax = 64

const matchPartField = createNameMatcher(['type', 'text', 'thought'])

/**
 * The content that begins at `at`: a string, an array of parts or one part, with each part as its text or
 * placeholder. Images and files are skipped without decoding.
 */
export function readContentParts(body: Buffer, at: number): string | ContentPartObject[] {
  const kind = kindAt(body, at)
  if (kind === 'string') return sanitizeText(readString(body, at))
  if (kind === 'object') return toNormalParts([readTextPart(body, at).part])
  if (kind === 'other') return ''
  const parts: unknown[] = []
  forEachElement(body, at, element => {
    if (parts.length === partsMax) return valueEnd(body, element)
    const { part, end } = readTextPart(body, element)
    parts.push(part)
    return end
  })
  return toNormalParts(parts)
}

/** A part that is a text has nothing else; one of another kind has the type that tells its placeholder. */
type ContentPartObject = { type: 'text'; text: string } | object

function toNormalParts(parts: readonly unknown[]): string | ContentPartObject[] {
  const normal = parts.flatMap(part =>
    contentParts([part]).map(({ text, isText }) =>
      isText ? { type: 'text', text: sanitizeText(text) } : (part as object),
    ),
  )
  const [only] = normal
  return normal.length === 1 && 'text' in only! ? (only.text as string) : normal
}

const readString = (body: Buffer, at: number): string =>
  parseValue(body, at, valueEnd(body, at)) as string

/** As `readContentParts`; a long text in steps. */
export function* readContentInSteps(
  body: Buffer,
  at: number,
): Steps<ReturnType<typeof readContentParts>> {
  const end = kindAt(body, at) === 'string' ? valueEnd(body, at) : at
  if (end - at <= textStepBytes) return readContentParts(body, at)
  return sanitizeText(yield* parseTextInSteps(body, at, end))
}

/** A part with only the fields that determine its text or its type. */
function readTextPart(body: Buffer, at: number): { part: unknown; end: number } {
  const kind = kindAt(body, at)
  if (kind === 'string') return { part: readString(body, at), end: valueEnd(body, at) }
  if (kind !== 'object') return { part: null, end: valueEnd(body, at) }
  const part = new Map<string, unknown>()
  const end = forEachMember(body, at, (start, nameEnd, value) => {
    const end = valueEnd(body, value)
    const name = matchPartField(body, start, nameEnd)
    if (name) part.set(name, readField(body, value, end))
    // Gemini names the type of a part by its first field.
    else if (part.size === 0 && nameEnd - start <= typeBytesMax) {
      part.set(parseValue(body, start, nameEnd) as string, null)
    }
    return end
  })
  // Not by assignment: a field may be named __proto__.
  return { part: Object.fromEntries(part), end }
}

function readField(body: Buffer, at: number, end: number): unknown {
  const kind = kindAt(body, at)
  return kind === 'string' || kind === 'other' ? parseValue(body, at, end) : null
}

const matchPartsField = createNameMatcher(['parts'])

/** The system prompt outside the messages, Anthropic's or Gemini's, as a turn. */
export function systemTurns(body: Buffer, at: number | undefined): Message[] {
  const content = at === undefined ? undefined : findContent(body, at)
  return content === undefined ? [] : [{ role: 'system', content: readContentParts(body, content) }]
}

function findContent(body: Buffer, at: number): number | undefined {
  if (kindAt(body, at) !== 'object') return kindAt(body, at) === 'other' ? undefined : at
  let parts: number | undefined
  forEachMember(body, at, (name, nameEnd, value) => {
    if (matchPartsField(body, name, nameEnd)) parts = value
    return valueEnd(body, value)
  })
  return parts
}

/** Bytes of a text that are decoded in one step: about two milliseconds. */
export const textStepBytes = 1024 * 1024

const backslash = 0x5c

/** The text between two offsets, those of its quotes, decoded in steps: at once, 18 MB take 40 ms. */
export function* parseTextInSteps(bytes: Buffer, start: number, end: number): Steps<string> {
  const pieces: string[] = []
  const textEnd = end - 1
  for (let from = start + 1; from < textEnd;) {
    const isLast = from + textStepBytes >= textEnd
    const to = isLast ? textEnd : pieceEnd(bytes, from, from + textStepBytes)
    pieces.push(JSON.parse(`"${bytes.toString('utf8', from, to)}"`) as string)
    from = to
    yield
  }
  return pieces.join('')
}

/** The last offset up to this one where neither an escape nor a character is cut. */
function pieceEnd(body: Buffer, from: number, offset: number): number {
  let at = offset
  while ((body[at]! & 0xc0) === 0x80) at--
  // An escape has six bytes at most.
  const near = body.subarray(0, at).lastIndexOf(backslash)
  if (near < at - 6) return at
  let first = near
  while (first > from && body[first - 1] === backslash) first--
  // The first of several backslashes in a row begins an escape, and then every other one.
  return first > from ? first : first + 2 * Math.floor((near - first) / 2)
}
