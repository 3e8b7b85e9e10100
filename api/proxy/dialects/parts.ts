import type { Insert } from '#api/proxy/json/splice.ts'
import { eachElement, eachMember, kindAt, valueEnd, type Names } from '#api/proxy/json/walk.ts'
import type { Entry, Block } from '#api/proxy/dialects/format.ts'

/** A part of a message: whether it is text or a tool's result, and whether the client marked it for caching. */
type Part = { start: number; end: number; text: boolean; result: boolean; marked: boolean }

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

/** Whether there is more in this content than text. */
export function usesTools(body: Buffer, { content }: Entry, format: PartFormat): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return partsAt(body, content, format).some(({ text }) => !text)
}

/** Whether a part of this content is marked for caching. */
export function hasMark(body: Buffer, { content }: Entry, format: PartFormat): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return partsAt(body, content, format).some(({ marked }) => marked)
}

/**
 * Where the head of a content is: after the tool results, which must come first, and after the last part
 * that is marked for caching, so that what is cached up to a mark is what the client sends again. Where
 * the mark comes down to its last part from `outside`, the head is its end.
 *
 * @returns how many parts come before it.
 */
export function headOf(
  body: Buffer,
  { content }: Entry,
  format: PartFormat,
  outside: boolean,
): number {
  if (content === undefined) return 0
  if (kindAt(body, content) !== 'array') return outside ? 1 : 0
  const parts = partsAt(body, content, format)
  if (outside) return parts.length
  const results = parts.findIndex(({ result }) => !result)
  const marks = parts.findLastIndex(({ marked }) => marked) + 1
  return Math.max(0, results, marks)
}

/** Puts a block after so many parts of a content, and a mark on the last one where one is given. */
export function atPart(
  body: Buffer,
  { content }: Entry,
  { context, place, mark }: Block,
  format: PartFormat,
): Insert[] {
  if (content === undefined) return []
  const block = format.block(context)
  const marking = mark === undefined ? '' : `,"cache_control":${mark}`
  const kind = kindAt(body, content)
  if (kind === 'array') {
    const parts = partsAt(body, content, format)
    const last = parts.at(-1)!
    const next = parts[place]
    return [
      ...(marking && !last.marked ? [{ at: last.end - 1, text: marking }] : []),
      next ? { at: next.start, text: `${block},` } : { at: last.end, text: `,${block}` },
    ]
  }
  const [before, after] = format.around[kind === 'string' ? 'string' : 'object'] ?? ['', '']
  const [first, last] = place > 0 ? ['', `,${block}`] : [`${block},`, '']
  return [
    { at: content, text: `[${first}${before}` },
    { at: valueEnd(body, content), text: `${marking}${after}${last}]` },
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
  const part: Part = { start: at, end: at, text: false, result: false, marked: false }
  const end = eachMember(body, at, (nameStart, nameEnd, value) => {
    const name = format.names(body, nameStart, nameEnd)
    if (name) format.tell(body, part, name, value)
    return valueEnd(body, value)
  })
  return { part: { ...part, end }, end }
}
