import type { Insertion } from '#api/proxy/json/splice.ts'
import {
  forEachElement,
  forEachMember,
  kindAt,
  valueEnd,
  type NameMatcher,
} from '#api/proxy/json/walk.ts'
import type { RawMessage, ContextBlock } from '#api/proxy/dialects/format.ts'

/** A part of a message, with the properties that decide where the block goes. */
type ContentPart = {
  start: number
  end: number
  isText: boolean
  isToolResult: boolean
  hasCacheControl: boolean
}

/** How a format writes its parts. */
export type PartFormat = {
  matchField: NameMatcher<string>
  /** Sets the properties of a part from a member, given its name and the offset of its value. */
  readField(body: Buffer, part: ContentPart, name: string, value: number): void
  /** The context block as a part. */
  renderBlock(context: string): string
  /** What makes a part of content that is no array; absent where the format has no such content. */
  arrayWrappers: {
    string?: [before: string, after: string]
    object?: [before: string, after: string]
  }
}

/** Whether the content holds text, or a part that is no tool result. */
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

/** Whether the content holds parts other than text. */
export function hasNonTextPart(body: Buffer, { content }: RawMessage, format: PartFormat): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return readParts(body, content, format).some(({ isText }) => !isText)
}

/** Whether a part of the content is a tool result. */
export function hasToolResult(body: Buffer, { content }: RawMessage, format: PartFormat): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return readParts(body, content, format).some(({ isToolResult }) => isToolResult)
}

/** Whether a part of the content has a `cache_control`. */
export function hasCacheControl(
  body: Buffer,
  { content }: RawMessage,
  format: PartFormat,
): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return false
  return readParts(body, content, format).some(({ hasCacheControl }) => hasCacheControl)
}

/**
 * Where the block goes: after the tool results, which must come first, and after the last part with a
 * `cache_control`, so that the cached prefix is what the client sends again. With a `cache_control` of
 * the body it goes to the end.
 *
 * @returns how many parts precede it.
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

/** Whether a block after `blockIndex` parts stands behind all parts of the message. */
export function isBlockLast(body: Buffer, { content }: RawMessage, blockIndex: number): boolean {
  if (content === undefined || kindAt(body, content) !== 'array') return blockIndex > 0
  let parts = 0
  forEachElement(body, content, element => {
    parts++
    return valueEnd(body, element)
  })
  return blockIndex >= parts
}

/** Inserts a block after `blockIndex` parts, and its `cacheControl`, if any, into the last part. */
export function insertBlockAsPart(
  body: Buffer,
  { content }: RawMessage,
  { context, blockIndex, cacheControl }: ContextBlock,
  format: PartFormat,
): Insertion[] {
  if (content === undefined) return []
  const block = format.renderBlock(context)
  const cacheControlMember = cacheControl === undefined ? '' : `,"cache_control":${cacheControl}`
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
