import { anthropicReplyFormat } from '#api/proxy/dialects/anthropic-reply.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { createReplyParser } from '#api/proxy/dialects/reply-parser.ts'
import {
  insertBlockAsPart,
  findBlockIndex,
  hasUserContent,
  hasNonTextPart,
  type PartFormat,
} from '#api/proxy/dialects/message-parts.ts'
import { parseProxyRequest } from '#api/proxy/dialects/request.ts'
import { kindAt, createNameMatcher, parseValue, valueEnd } from '#api/proxy/json/walk.ts'
import type { RequestFormat } from '#api/proxy/dialects/format.ts'

const partFormat: PartFormat = {
  matchField: createNameMatcher(['type', 'cache_control']),
  readField(body, part, name, value) {
    const kind = kindAt(body, value)
    if (name === 'cache_control') part.hasCacheControl = kind === 'object'
    else {
      part.isToolResult = kind === 'string' && isStringEqual(body, value, 'tool_result')
      part.isText = kind === 'string' && isStringEqual(body, value, 'text')
    }
  },
  renderBlock: context => `{"type":"text","text":${JSON.stringify(context)}}`,
  arrayWrappers: { string: ['{"type":"text","text":', '}'] },
}

function isStringEqual(body: Buffer, at: number, word: string): boolean {
  const end = valueEnd(body, at)
  // Six bytes for a character where it is escaped.
  return end - at <= 6 * word.length + 2 && parseValue(body, at, end) === word
}

/**
 * The block is a text at the head of the last message in which the user speaks, never marked itself. What
 * the client has marked there comes before it: a cache that ended in the block would never be found again.
 * A mark for the whole request means the last block of it, which would be ours: it is set on the client's.
 */
const requestFormat: RequestFormat = {
  messagesField: 'messages',
  contentField: 'content',
  singleMessageAllowed: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  hasModelInBody: true,
  hasRequestCacheControl: true,
  isUserMessage: (body, entry) => entry.role === 'user' && hasUserContent(body, entry, partFormat),
  isPausedReply: (body, entry) => hasNonTextPart(body, entry, partFormat),
  findBlockIndex: (body, entry, marked) => findBlockIndex(body, entry, partFormat, marked),
  insertBlock: (body, entry, block) => insertBlockAsPart(body, entry, block, partFormat),
}

/** Anthropic's messages. */
export const anthropic: Dialect = {
  apiFormat: 'anthropic',
  parseRequest: body => parseProxyRequest(body, requestFormat),
  createReplyParser: answer => createReplyParser(answer, anthropicReplyFormat),
}
