import {
  forEachElement,
  forEachMember,
  kindAt,
  createNameMatcher,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'
import { extractText } from '#shared/domain/message-content.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/** Most parts of one message that are read, as in `POST /v1/memory/ingest`. */
const partsMax = 10_000

/** Longest name of a part's type. */
const typeBytesMax = 64

const matchPartField = createNameMatcher(['type', 'text', 'thought'])

/**
 * The text of the content that begins at `at`: a string, an array of parts or one part, as
 * `extractText` understands them. Images and files are skipped without decoding.
 */
export function readContentText(body: Buffer, at: number): string {
  const kind = kindAt(body, at)
  if (kind === 'string') return sanitizeText(readString(body, at))
  if (kind === 'object') return sanitizeText(extractText([readTextPart(body, at).part]))
  if (kind === 'other') return ''
  const parts: unknown[] = []
  forEachElement(body, at, element => {
    if (parts.length === partsMax) return valueEnd(body, element)
    const { part, end } = readTextPart(body, element)
    parts.push(part)
    return end
  })
  return sanitizeText(extractText(parts))
}

const readString = (body: Buffer, at: number): string =>
  parseValue(body, at, valueEnd(body, at)) as string

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
