import {
  createNameMatcher,
  forEachElement,
  forEachMember,
  kindAt,
  parseValue,
  valueEnd,
} from '#shared/core/json-walk.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { contentParts, type Message } from '#shared/domain/message-content.ts'

const partFields = [
  'type',
  'text',
  'thought',
  'cache_control',
  'functionResponse',
  'function_response',
] as const

/** An element of a content, or a content that is no array, by its offsets in the body. */
export type ContentPart = {
  start: number
  end: number
  /** The name of its first member, if that is no long one. */
  first?: string
  /** Where the values of these members begin, in a part that is an object. */
  fields: { [Field in (typeof partFields)[number]]?: number }
}

const matchPartField = createNameMatcher(partFields)

/** Longer types, and longer names of first members, are ignored; an escape spells one character with six bytes. */
const textBytesMax = 256
const nameBytesMax = 64

/** The parts of the content that begins at `at`: its elements, or the one part that it is; none of a number or null. */
export function readParts(body: Buffer, at: number | undefined): ContentPart[] {
  if (at === undefined) return []
  const parts: ContentPart[] = []
  const add = (element: number): number => {
    const part = readPart(body, element)
    parts.push(part)
    return part.end
  }
  if (kindAt(body, at) === 'array') forEachElement(body, at, add)
  else if (kindAt(body, at) !== 'other') add(at)
  return parts
}

function readPart(body: Buffer, start: number): ContentPart {
  const part: ContentPart = { start, end: start, fields: {} }
  if (kindAt(body, start) !== 'object') return { ...part, end: valueEnd(body, start) }
  part.end = forEachMember(body, start, (name, nameEnd, value) => {
    const field = matchPartField(body, name, nameEnd)
    if (field) part.fields[field] = value
    const isNamed = field === 'type' || field === 'text' || field === 'thought'
    if (part.first === undefined && (isNamed || nameEnd - name <= nameBytesMax))
      part.first = parseValue(body, name, nameEnd) as string
    return undefined
  })
  return part
}

/** The text that begins at `at`, if it is one and not longer than so many bytes. */
export function readShortText(
  body: Buffer,
  at: number | undefined,
  bytesMax = textBytesMax,
): string | undefined {
  if (at === undefined || kindAt(body, at) !== 'string') return undefined
  const end = valueEnd(body, at)
  return end - at > bytesMax ? undefined : sanitizeText(parseValue(body, at, end) as string)
}

export const isTextPart = (body: Buffer, { start, fields: { text } }: ContentPart): boolean =>
  kindAt(body, text ?? start) === 'string'

/** Most parts of one message that are read, as in `POST /v1/memory/ingest`. */
const partsMax = 10_000

/**
 * The content that begins at `at`: a string, an array of parts or one part, with each part as its text or
 * placeholder. Images and files are skipped without decoding.
 */
export function readContent(
  body: Buffer,
  at: number,
): string | ({ type: 'text'; text: string } | object)[] {
  if (kindAt(body, at) === 'string')
    return sanitizeText(parseValue(body, at, valueEnd(body, at)) as string)
  if (kindAt(body, at) === 'other') return ''
  const normal = readParts(body, at)
    .slice(0, partsMax)
    .map(part => fieldsOf(body, part))
    .flatMap(part =>
      contentParts([part]).map(({ text, isText }) =>
        isText ? { type: 'text', text: sanitizeText(text) } : (part as object),
      ),
    )
  const [only] = normal
  return normal.length === 1 && 'text' in only! ? (only.text as string) : normal
}

/** The part with only the fields that determine its text or its type. */
function fieldsOf(body: Buffer, { start, end, first, fields }: ContentPart): unknown {
  const kind = kindAt(body, start)
  if (kind !== 'object') return kind === 'string' ? parseValue(body, start, end) : null
  const { type, text, thought } = fields
  return {
    // Gemini names the type of a part by its first field.
    ...(first !== undefined && { [first]: null }),
    ...(type !== undefined && { type: readScalar(body, type) }),
    ...(text !== undefined && { text: readScalar(body, text) }),
    ...(thought !== undefined && { thought: readScalar(body, thought) }),
  }
}

/** A text, number or literal; null for anything else. */
function readScalar(body: Buffer, at: number): unknown {
  const kind = kindAt(body, at)
  return kind === 'object' || kind === 'array' ? null : parseValue(body, at, valueEnd(body, at))
}

const matchPartsField = createNameMatcher(['parts'])

/** The system prompt outside the messages, as a turn: a text, a list of parts, or Gemini's object with parts. */
export function systemTurns(body: Buffer, at: number | undefined): Message[] {
  if (at === undefined || kindAt(body, at) === 'other') return []
  let content: number | undefined = at
  if (kindAt(body, at) === 'object') {
    content = undefined
    forEachMember(body, at, (name, nameEnd, value) => {
      if (matchPartsField(body, name, nameEnd)) content = value
      return undefined
    })
  }
  return content === undefined ? [] : [{ role: 'system', content: readContent(body, content) }]
}
