import { ChatBody } from '#api/contract/contract.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { openaiReplyFormat } from '#api/proxy/dialects/openai-reply.ts'
import { createReplyParser } from '#api/proxy/dialects/reply-parser.ts'
import { hasCacheControl, type PartFormat } from '#api/proxy/dialects/message-parts.ts'
import { createRequestParsers } from '#api/proxy/dialects/request.ts'
import { createTypedFieldReader } from '#api/proxy/dialects/typed-fields.ts'
import { kindAt, createNameMatcher, valueEnd } from '#api/proxy/json/walk.ts'
import type { RequestFormat } from '#api/proxy/dialects/format.ts'

const partFormat: PartFormat = {
  matchField: createNameMatcher(['cache_control']),
  readField(body, part, _, value) {
    part.hasCacheControl = kindAt(body, value) === 'object'
  },
  renderBlock: context => `{"role":"user","content":${JSON.stringify(context)}}`,
  arrayWrappers: {},
}

/**
 * The context block is a user message of its own. A system message amid a conversation would weigh more
 * than recalled text should, and is not accepted everywhere: Mistral and the chat templates of many open
 * models refuse it, and the compatible endpoints of Anthropic and Google move it into the system prompt,
 * where it would change the cached prefix of every call. Only OpenAI knows `developer`. Two consecutive
 * user messages are accepted everywhere, and the block's text says that it is background.
 *
 * It precedes the user's message, or follows it when parts of that have a `cache_control`, which
 * aggregators pass on to Anthropic.
 */
const requestFormat: RequestFormat = {
  readTypedField: createTypedFieldReader('ChatBody'),
  messagesField: 'messages',
  contentField: 'content',
  singleMessageAllowed: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  hasModelInBody: true,
  hasRequestCacheControl: false,
  isUserMessage: (_, { role }) => role === 'user',
  findBlockIndex: (body, entry) => (hasCacheControl(body, entry, partFormat) ? 1 : 0),
  isBlockLast: (_body, _entry, blockIndex) => blockIndex > 0,
  insertBlock: (body, { start }, { context, blockIndex }) => [
    blockIndex > 0
      ? { at: valueEnd(body, start), text: `,${partFormat.renderBlock(context)}` }
      : { at: start, text: `${partFormat.renderBlock(context)},` },
  ],
}

/** OpenAI's chat completions, and the many providers that speak them. */
export const openai: Dialect = {
  apiFormat: 'openai',
  bodyShape: ChatBody,
  ...createRequestParsers(requestFormat),
  createReplyParser: answer => createReplyParser(answer, openaiReplyFormat),
}
