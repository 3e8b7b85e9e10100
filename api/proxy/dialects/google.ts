import { GeminiBody } from '#api/contract/contract.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { googleReplyFormat } from '#api/proxy/dialects/google-reply.ts'
import { createReplyParser } from '#api/proxy/dialects/reply-parser.ts'
import {
  insertBlockAsPart,
  isBlockLast,
  findBlockIndex,
  hasToolResult,
  hasUserContent,
  type PartFormat,
} from '#api/proxy/dialects/message-parts.ts'
import { createRequestParsers } from '#api/proxy/dialects/request.ts'
import { createTypedFieldReader } from '#api/proxy/dialects/typed-fields.ts'
import { createNameMatcher } from '#api/proxy/json/walk.ts'
import type { RequestFormat } from '#api/proxy/dialects/format.ts'

const partFormat: PartFormat = {
  matchField: createNameMatcher(['functionResponse', 'function_response']),
  readField(_, part) {
    part.isToolResult = true
  },
  renderBlock: context => `{"text":${JSON.stringify(context)}}`,
  arrayWrappers: { object: ['', ''] },
}

/**
 * The context block is a part at the beginning of the last user content. A content without a role is the
 * user's. Google accepts one object in place of an array of contents or parts, and its examples use that.
 */
const requestFormat: RequestFormat = {
  readTypedField: createTypedFieldReader('GeminiBody'),
  messagesField: 'contents',
  contentField: 'parts',
  singleMessageAllowed: true,
  modelRole: 'model',
  defaultRole: 'user',
  hasModelInBody: false,
  hasRequestCacheControl: false,
  isUserMessage: (body, entry) => entry.role === 'user' && hasUserContent(body, entry, partFormat),
  hasToolResult: (body, entry) => hasToolResult(body, entry, partFormat),
  findBlockIndex: (body, entry) => findBlockIndex(body, entry, partFormat, false),
  isBlockLast,
  insertBlock: (body, entry, block) => insertBlockAsPart(body, entry, block, partFormat),
}

/** Gemini's contents. */
export const google: Dialect = {
  apiFormat: 'google',
  bodyShape: GeminiBody,
  ...createRequestParsers(requestFormat),
  createReplyParser: answer => createReplyParser(answer, googleReplyFormat),
}
