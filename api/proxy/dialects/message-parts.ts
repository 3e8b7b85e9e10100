import type { Insertion } from '#api/proxy/json/splice.ts'
import {
  forEachElement,
  forEachMember,
  kindAt,
  valueEnd,
  type NameMatcher,
} from '#api/proxy/json/walk.ts'
import type { RawMessage, ContextBlock } from '#api/proxy/dialects/format.ts'

/** A part of a message: whether it is text or a tool's result, and whether the client marked it for caching. */
type ContentPart = {
  start: number
  end: number
  isText: boolean
  isToolResult: boolean
  hasCacheControl: boolean
}

/** How a family writes its parts. */
export type PartFormat = {
  matchField: NameMatcher<string>
  /** Tells what a member says about its part, by its name and its value's place. */
  readField(body: Buffer, part: ContentPart, name: string, value: number): void
  /** Our block, and a client's plain text, as parts. */
  renderBlock(context: string): string
  /** What to write around a content that is no array yet. */
  arrayWrappers: {
    string?: [before: string, after: string]
    object?: [before: string, after: string]
  }
}

/** Whether the user says something in this content: a text, or a part that is no tool's result. */
export function hasUserContent(body: Buffer, { content }: RawMessage, format: PartFormat): boolean {
  if (content === undefined) return false
  const kind = kindAt(body, content)
  if (kind === 'array') return hasUserPart(body, content, format)
  if (kind === 'string')
    return format.arrayWrappers.string !== undefined && body[content + 1] !== 0x22
  return kind === 'object' && format.arrayWrappers.object !== undefined
    ? !readPart(body, content, format).part.isToolResult
    : false
}

function hasUserPart(body: Buffer, at: number, format: PartFormat): boolean {
  let found = false
  forEachElement(body, at, element => {
    if (found || kindAt(body, element) !== 'object') return valueEnd(body, element)
    const { part, end } = readPart(body, element, format)
    found = !part.isToolResult
    return end
  })
  return found
}

/** Whether there is more in this content than text. */
export function hasNonTextPart(body: Buffer, { content }: RawMessage, format: PartFormat): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return readParts(body, content, format).some(({ isText }) => !isText)
}

/** Whether a part of this content is marked for caching. */
export function hasCacheControl(
  body: Buffer,
  { content }: RawMessage,
  format: PartFormat,
): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return readParts(body, content, format).some(({ hasCacheControl }) => hasCacheControl)
}

/**
 * Where the head of a content is: after the tool results, which must come first, and after the last part
 * that is marked for caching, so that what is cached up to a mark is what the client sends again. Where
 * the mark comes down to its last part from `outside`, the head is its end.
 *
 * @returns how many parts come before it.
 */
export function findBlockIndex(
  body: Buffer,
  { content }: RawMessage,
  format: PartFormat,
  hasOuterCacheControl: boolean,
): number {
  if (content === undefined) return 0
  if (kindAt(body, content) !== 'array') return hasOuterCacheControl ? 1 : 0
  const parts = readParts(body, content, format)
  if (hasOuterCacheControl) return parts.length
  const firstNonResult = parts.findIndex(({ isToolResult }) => !isToolResult)
  const afterCacheControl = parts.findLastIndex(({ hasCacheControl }) => hasCacheControl) + 1
  return Math.max(0, firstNonResult, afterCacheControl)
}

/** Puts a block after so many parts of a content, and a mark on the last one where one is given. */
export function insertBlockAsPart(
  body: Buffer,
  { content }: RawMessage,
  { context, blockIndex, mark }: ContextBlock,
  format: PartFormat,
): Insertion[] {
  if (content === undefined) return []
  const block = format.renderBlock(context)
  const cacheControlMember = mark === undefined ? '' : `,"cache_control":${mark}`
  const kind = kindAt(body, content)
  if (kind === 'array') {
    const parts = readParts(body, content, format)
    const last = parts.at(-1)!
    const next = parts[blockIndex]
    return [
      ...(cacheControlMember && !last.hasCacheControl
        ? [{ at: last.end - 1, text: cacheControlMember }]
        : []),
      next ? { at: next.start, text: `${block},` } : { at: last.end, text: `,${block}` },
    ]
  }
  const [before, after] = format.arrayWrappers[kind === 'string' ? 'string' : 'object'] ?? ['', '']
  const [first, last] = blockIndex > 0 ? ['', `,${block}`] : [`${block},`, '']
  return [
    { at: content, text: `[${first}${before}` },
    { at: valueEnd(body, content), text: `${cacheControlMember}${after}${last}]` },
  ]
}

function readParts(body: Buffer, at: number, format: PartFormat): ContentPart[] {
  const parts: ContentPart[] = []
  forEachElement(body, at, element => {
    if (kindAt(body, element) !== 'object') return valueEnd(body, element)
    const { part, end } = readPart(body, element, format)
    parts.push(part)
    return end
  })
  return parts
}

function readPart(
  body: Buffer,
  at: number,
  format: PartFormat,
): { part: ContentPart; end: number } {
  const part: ContentPart = {
    start: at,
    end: at,
    isText: false,
    isToolResult: false,
    hasCacheControl: false,
  }
  const end = forEachMember(body, at, (nameStart, nameEnd, value) => {
    const name = format.matchField(body, nameStart, nameEnd)
    if (name) format.readField(body, part, name, value)
    return valueEnd(body, value)
  })
  return { part: { ...part, end }, end }
}
