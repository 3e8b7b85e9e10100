import type { Entry } from '#api/proxy/dialects/conversation.ts'
import type { Insert } from '#api/proxy/json/splice.ts'
import { eachElement, eachMember, kindAt, valueEnd, type Names } from '#api/proxy/json/walk.ts'

/** A part of a message: whether it is a tool's result, and whether the client marked it for caching. */
type Part = { start: number; result: boolean; marked: boolean }

/** How a family writes its parts. */
export type PartFormat = {
  names: Names<string>
  /** Tells what a member says about its part, by its name and its value's place. */
  tell(body: Buffer, part: Part, name: string, value: number): void
  /** Our block, and a client's plain text, as parts. */
  block(context: string): string
  /** What to write around a content that is no array yet. */
  around: { string?: [before: string, after: string]; object?: [before: string, after: string] }
}

/** Whether the user says something in this content: a text, or a part that is no tool's result. */
export function saysSomething(body: Buffer, { content }: Entry, format: PartFormat): boolean {
  if (content === undefined) return false
  const kind = kindAt(body, content)
  if (kind === 'array') return partsSaySomething(body, content, format)
  if (kind === 'string') return format.around.string !== undefined && body[content + 1] !== 0x22
  return kind === 'object' && format.around.object !== undefined
    ? !partAt(body, content, format).part.result
    : false
}

function partsSaySomething(body: Buffer, at: number, format: PartFormat): boolean {
  let says = false
  eachElement(body, at, element => {
    if (says || kindAt(body, element) !== 'object') return valueEnd(body, element)
    const { part, end } = partAt(body, element, format)
    says = !part.result
    return end
  })
  return says
}

/**
 * Puts a block at the head of a content: after the tool results, which must come first, and after the
 * last part marked for caching that others follow, so that what is cached up to a mark stays the same.
 */
export function atHead(
  body: Buffer,
  { content }: Entry,
  context: string,
  format: PartFormat,
): Insert[] {
  if (content === undefined) return []
  const kind = kindAt(body, content)
  if (kind === 'array') {
    const parts = partsAt(body, content, format)
    const results = parts.findIndex(({ result }) => !result)
    const marks = parts.findLastIndex(({ marked }, index) => marked && index < parts.length - 1) + 1
    const at = parts[Math.max(results, marks)]!.start
    return [{ at, text: `${format.block(context)},` }]
  }
  const [before, after] = format.around[kind === 'string' ? 'string' : 'object'] ?? ['', '']
  return [
    { at: content, text: `[${format.block(context)},${before}` },
    { at: valueEnd(body, content), text: `${after}]` },
  ]
}

function partsAt(body: Buffer, at: number, format: PartFormat): Part[] {
  const parts: Part[] = []
  eachElement(body, at, element => {
    if (kindAt(body, element) !== 'object') return valueEnd(body, element)
    const { part, end } = partAt(body, element, format)
    parts.push(part)
    return end
  })
  return parts
}

function partAt(body: Buffer, at: number, format: PartFormat): { part: Part; end: number } {
  const part: Part = { start: at, result: false, marked: false }
  const end = eachMember(body, at, (nameStart, nameEnd, value) => {
    const name = format.names(body, nameStart, nameEnd)
    if (name) format.tell(body, part, name, value)
    return valueEnd(body, value)
  })
  return { part, end }
}
