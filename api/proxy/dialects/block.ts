import type { ContentPart } from '#api/proxy/dialects/content.ts'
import type { RequestMessage, RequestSource } from '#api/proxy/dialects/messages.ts'
import type { Insertion } from '#api/proxy/json/splice.ts'
import { kindAt } from '#shared/core/json-walk.ts'

/** The recalled memories that are added to a request. */
export type ContextBlock = {
  context: string
  /** How many parts of the user's message precede it; 0 or 1 where it is a message of its own. */
  blockIndex: number
  /** JSON of a `cache_control` to set on the last part of that message. */
  cacheControl?: string | undefined
}

/** What the block goes before or after: the message, the parts of its content, or the value in place of a list of these. */
function elementsAround({ body, format }: RequestSource, message: RequestMessage): ContentPart[] {
  const { start, end, contentAt } = message
  if (format.block.as === 'message') return [{ start, end, fields: {} }]
  const isList = contentAt === undefined || kindAt(body, contentAt) === 'array'
  return isList ? message.objectParts : message.parts
}

const isCached = ({ body, format }: RequestSource, { fields }: ContentPart): boolean =>
  format.cacheControl !== undefined &&
  fields.cache_control !== undefined &&
  kindAt(body, fields.cache_control) === 'object'

/**
 * Where the block goes: after the tool results, which must come first, and after the last part with a
 * `cache_control`, so that the cached prefix is what the client sends again.
 *
 * @param hasOuterCacheControl whether a `cache_control` of the body applies to the last part: the block follows it
 * @returns the `blockIndex`
 */
export function findBlockIndex(
  source: RequestSource,
  message: RequestMessage,
  hasOuterCacheControl: boolean,
): number {
  const { body, format } = source
  if (hasOuterCacheControl) return elementsAround(source, message).length
  const parts = message.objectParts
  const cached = parts.findLastIndex(part => isCached(source, part)) + 1
  if (format.block.as === 'message') return Math.min(cached, 1)
  return Math.max(
    0,
    cached,
    parts.findIndex(part => !format.isToolResult?.(body, part)),
  )
}

/** Whether a block at this `blockIndex` stands behind all of the message. */
export const isBlockLast = (
  source: RequestSource,
  message: RequestMessage,
  blockIndex: number,
): boolean => blockIndex >= Math.max(1, elementsAround(source, message).length)

/** The insertions that put the block at its place, and its `cacheControl`, if any, into the last part. */
export function insertBlock(
  source: RequestSource,
  message: RequestMessage,
  { context, blockIndex, cacheControl }: ContextBlock,
): Insertion[] {
  const { body, format } = source
  const block = format.block.toJson(context)
  const mark = cacheControl === undefined ? '' : `,"cache_control":${cacheControl}`
  const elements = elementsAround(source, message)
  const [next, last] = [elements[blockIndex], elements.at(-1)]
  if (!last) return []
  const listAt = format.block.as === 'part' ? message.contentAt! : message.start
  const wrapper = format.wrappers[kindAt(body, listAt)]
  if (wrapper) {
    const [before, after] = wrapper
    const [first, end] = next ? [`${block},`, ''] : ['', `,${block}`]
    return [
      { at: last.start, text: `[${first}${before}` },
      { at: last.end, text: `${mark}${after}${end}]` },
    ]
  }
  return [
    ...(mark && !isCached(source, last) ? [{ at: last.end - 1, text: mark }] : []),
    next ? { at: next.start, text: `${block},` } : { at: last.end, text: `,${block}` },
  ]
}
