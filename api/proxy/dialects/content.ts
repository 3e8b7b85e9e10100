import { eachElement, eachMember, kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { textOf } from '#shared/domain/turn-content.ts'
import { wellFormedText } from '#shared/core/sanitize-text.ts'

/** As many parts of one message are read as `POST /v1/memory/ingest` takes. */
const partsMax = 10_000

/** A kind's name is short; what is longer is no kind. */
const kindBytesMax = 64

const partName = namesOf(['type', 'text', 'thought'])

/**
 * The text of the content that begins at `at`: a string, an array of parts or one part alone, as
 * `textOf` understands them. Pictures and files are stepped over, never read.
 */
export function textFrom(body: Buffer, at: number): string {
  const kind = kindAt(body, at)
  if (kind === 'string') return wellFormedText(textAt(body, at))
  if (kind === 'object') return wellFormedText(textOf([partAt(body, at).part]))
  if (kind === 'other') return ''
  const parts: unknown[] = []
  eachElement(body, at, element => {
    if (parts.length === partsMax) return valueEnd(body, element)
    const { part, end } = partAt(body, element)
    parts.push(part)
    return end
  })
  return wellFormedText(textOf(parts))
}

const textAt = (body: Buffer, at: number): string => parsed(body, at, valueEnd(body, at)) as string

/** A part with only those fields by which its text or its kind is known. */
function partAt(body: Buffer, at: number): { part: unknown; end: number } {
  const kind = kindAt(body, at)
  if (kind === 'string') return { part: textAt(body, at), end: valueEnd(body, at) }
  if (kind !== 'object') return { part: null, end: valueEnd(body, at) }
  const part = new Map<string, unknown>()
  const end = eachMember(body, at, (start, nameEnd, value) => {
    const end = valueEnd(body, value)
    const name = partName(body, start, nameEnd)
    if (name) part.set(name, fieldOf(body, value, end))
    // Gemini names the kind of a part by its first field.
    else if (part.size === 0 && nameEnd - start <= kindBytesMax) {
      part.set(parsed(body, start, nameEnd) as string, null)
    }
    return end
  })
  // Not by assignment: a field may be called __proto__.
  return { part: Object.fromEntries(part), end }
}

function fieldOf(body: Buffer, at: number, end: number): unknown {
  const kind = kindAt(body, at)
  return kind === 'string' || kind === 'other' ? parsed(body, at, end) : null
}
