import { ResponsesBody } from '#api/contract/contract.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import type { RequestFormat } from '#api/proxy/dialects/format.ts'
import { hasCacheControl, type PartFormat } from '#api/proxy/dialects/message-parts.ts'
import { createReplyParser } from '#api/proxy/dialects/reply-parser.ts'
import { createRequestParsers } from '#api/proxy/dialects/request.ts'
import { responsesReplyFormat } from '#api/proxy/dialects/responses-reply.ts'
import { createTypedFieldReader } from '#api/proxy/dialects/typed-fields.ts'
import { createNameMatcher, kindAt, valueEnd } from '#api/proxy/json/walk.ts'

const partFormat: PartFormat = {
  matchField: createNameMatcher(['cache_control']),
  readField(body, part, _, value) {
    part.hasCacheControl = kindAt(body, value) === 'object'
  },
  renderBlock: context =>
    `{"type":"message","role":"user","content":[{"type":"input_text","text":${JSON.stringify(context)}}]}`,
  arrayWrappers: {},
}

/**
 * The role of an item that has none: results of tools by the end of their type, tools that a client
 * declares inside the input, and everything else (reasoning, calls of tools, references) as the model's.
 */
function roleOfItem(type: string | undefined): string {
  if (type === 'additional_tools') return 'developer'
  return type !== undefined && /_(?:output|response)$/.test(type) ? 'tool' : 'assistant'
}

/**
 * The context block is a user item of its own before the last user item, or after it when parts of that
 * have a `cache_control`, as in chat completions. `input` as one text becomes a list of two items.
 * What a provider keeps of earlier calls (`previous_response_id`, `conversation`) is not rewritten.
 */
const requestFormat: RequestFormat = {
  readTypedField: createTypedFieldReader('ResponsesBody'),
  messagesField: 'input',
  contentField: 'content',
  singleMessageAllowed: false,
  textAllowed: true,
  modelRole: 'assistant',
  defaultRole: undefined,
  roleOfItem,
  hasModelInBody: true,
  hasRequestCacheControl: false,
  isUserMessage: (_, { role }) => role === 'user',
  // Reasoning or a call of a tool, not the beginning of an answer: the model has worked on the turn.
  isPausedReply: (_, { content }) => content === undefined,
  findBlockIndex: (body, entry) => (hasCacheControl(body, entry, partFormat) ? 1 : 0),
  isBlockLast: (_body, _entry, blockIndex) => blockIndex > 0,
  insertBlock(body, { start }, { context, blockIndex }) {
    const block = partFormat.renderBlock(context)
    const end = valueEnd(body, start)
    if (kindAt(body, start) === 'string') {
      return [
        { at: start, text: `[${block},{"role":"user","content":` },
        { at: end, text: '}]' },
      ]
    }
    return [blockIndex > 0 ? { at: end, text: `,${block}` } : { at: start, text: `${block},` }]
  },
}

/** OpenAI's Responses, and the providers that speak them. */
export const responses: Dialect = {
  apiFormat: 'responses',
  bodyShape: ResponsesBody,
  ...createRequestParsers(requestFormat),
  createReplyParser: answer => createReplyParser(answer, responsesReplyFormat),
}
