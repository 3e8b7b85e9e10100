import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { openaiReplyFormat } from '#api/proxy/dialects/openai-reply.ts'
import { createReplyParser } from '#api/proxy/dialects/reply-parser.ts'
import { hasCacheControl, type PartFormat } from '#api/proxy/dialects/message-parts.ts'
import { parseProxyRequest } from '#api/proxy/dialects/request.ts'
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
 * The block is a message of its own, and the user's. A system message in mid conversation would be
 * stronger than remembered text should be, and not everybody takes one: Mistral and the chat templates
 * of many open models refuse it, and the compatible endpoints of Anthropic and Google move it up into
 * the system prompt, where it would change the cached beginning of every call. `developer` is known to
 * OpenAI alone. Two user messages in a row are taken everywhere, and the block says by itself that it is
 * background.
 *
 * It comes before the user's message; after it when parts of that are marked for caching, as aggregators
 * pass on to Anthropic.
 */
const requestFormat: RequestFormat = {
  messagesField: 'messages',
  contentField: 'content',
  singleMessageAllowed: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  hasModelInBody: true,
  hasRequestCacheControl: false,
  isUserMessage: (_, { role }) => role === 'user',
  findBlockIndex: (body, entry) => (hasCacheControl(body, entry, partFormat) ? 1 : 0),
  insertBlock: (body, { start }, { context, blockIndex }) => [
    blockIndex > 0
      ? { at: valueEnd(body, start), text: `,${partFormat.renderBlock(context)}` }
      : { at: start, text: `${partFormat.renderBlock(context)},` },
  ],
}

/** OpenAI's chat completions, and the many providers that speak them. */
export const openai: Dialect = {
  apiFormat: 'openai',
  parseRequest: body => parseProxyRequest(body, requestFormat),
  createReplyParser: answer => createReplyParser(answer, openaiReplyFormat),
}
