import { AnthropicMessagesBody } from '#api/contract/contract.ts'
import { anthropicReplyFormat } from '#api/proxy/dialects/anthropic-reply.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { createReplyParser } from '#api/proxy/dialects/reply-parser.ts'
import {
  insertBlockAsPart,
  isBlockLast,
  findBlockIndex,
  hasToolResult,
  hasUserContent,
  hasNonTextPart,
  type PartFormat,
} from '#api/proxy/dialects/message-parts.ts'
import { createRequestParsers } from '#api/proxy/dialects/request.ts'
import { createTypedFieldReader } from '#api/proxy/dialects/typed-fields.ts'
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

function isStringEqual(body: Buffer, at: number, expected: string): boolean {
  const end = valueEnd(body, at)
  // An escaped character takes six bytes.
  return end - at <= 6 * expected.length + 2 && parseValue(body, at, end) === expected
}

/**
 * The context block is a text part in the last user message, without a `cache_control`. Parts of the
 * client with one precede it: a cached prefix that ended in the block would never match again. A
 * `cache_control` of the body applies to its last part, which could be the block: it is moved to the
 * client's last part.
 */
const requestFormat: RequestFormat = {
  readTypedField: createTypedFieldReader('AnthropicMessagesBody'),
  messagesField: 'messages',
  contentField: 'content',
  singleMessageAllowed: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  hasModelInBody: true,
  hasRequestCacheControl: true,
  isUserMessage: (body, entry) => entry.role === 'user' && hasUserContent(body, entry, partFormat),
  isPausedReply: (body, entry) => hasNonTextPart(body, entry, partFormat),
  hasToolResult: (body, entry) => hasToolResult(body, entry, partFormat),
  findBlockIndex: (body, entry, hasOuterCacheControl) =>
    findBlockIndex(body, entry, partFormat, hasOuterCacheControl),
  isBlockLast,
  insertBlock: (body, entry, block) => insertBlockAsPart(body, entry, block, partFormat),
}

/** Anthropic's messages. */
export const anthropic: Dialect = {
  apiFormat: 'anthropic',
  bodyShape: AnthropicMessagesBody,
  ...createRequestParsers(requestFormat),
  createReplyParser: answer => createReplyParser(answer, anthropicReplyFormat),
}
