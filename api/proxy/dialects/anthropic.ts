import { AnthropicMessagesBody } from '#api/contract/contract.ts'
import { readParts, readShortText } from '#api/proxy/dialects/content.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import {
  isObject,
  objectsIn,
  parseByType,
  sumTokenCounts,
  toTokenCount,
  type JsonObject,
  type ReplyAccumulator,
  type ReplyFormat,
} from '#api/proxy/dialects/reply.ts'
import { kindAt } from '#shared/core/json-walk.ts'

/**
 * Anthropic's messages.
 *
 * The context block is a text part in the last user message, without a `cache_control`. Parts of the
 * client with one precede it: a cached prefix that ended in the block would never match again. A
 * `cache_control` of the body applies to its last part, which could be the block: it is moved to the
 * client's last part.
 */
export const anthropicRequest: RequestFormat = {
  bodyShape: AnthropicMessagesBody,
  messages: 'messages',
  content: 'content',
  hasModelInBody: true,
  modelRole: 'assistant',
  isToolResult: (body, { fields: { type } }) => readShortText(body, type) === 'tool_result',
  // Calls of the provider's own tools stand in it.
  isPausedReply: (body, content) =>
    content !== undefined &&
    kindAt(body, content) === 'array' &&
    readParts(body, content).some(({ fields: { type } }) => readShortText(body, type) !== 'text'),
  cacheControl: 'parts and body',
  block: { as: 'part', toJson: context => `{"type":"text","text":${JSON.stringify(context)}}` },
  wrappers: { string: ['{"type":"text","text":', '}'] },
}

/** A complete message, or an event of its stream. Consecutive text blocks are one text: citations make many. */
const parseEvent = parseByType({
  message(message, reply) {
    for (const block of objectsIn(message.content)) parseContentBlock(block, reply)
    parseMessageEnd(message, reply)
  },
  message_start({ message }, reply) {
    if (isObject(message)) parseUsage(message, reply)
  },
  content_block_start({ content_block }, reply) {
    if (isObject(content_block)) parseContentBlock(content_block, reply)
  },
  content_block_delta({ delta }, reply) {
    if (isObject(delta) && delta.type === 'text_delta') reply.addText(delta.text)
  },
  message_delta({ delta, usage }, reply) {
    parseMessageEnd({ ...(isObject(delta) && delta), usage }, reply)
  },
  message_stop(_, reply) {
    reply.complete = true
  },
  error(_, reply) {
    reply.failed = true
  },
})

function parseContentBlock(block: JsonObject, reply: ReplyAccumulator): void {
  if (block.type === 'tool_use') reply.isStep = true
  if (block.type === 'text') reply.addText(block.text)
  else reply.addPart(block)
}

function parseMessageEnd(message: JsonObject, reply: ReplyAccumulator): void {
  parseUsage(message, reply)
  // A paused reply goes on in the next call.
  if (message.stop_reason === 'pause_turn') reply.isStep = true
  if (typeof message.stop_reason === 'string') reply.complete = true
}

/** Anthropic counts input tokens read from or written to its cache apart from the other ones. */
function parseUsage({ usage }: JsonObject, reply: ReplyAccumulator): void {
  if (!isObject(usage)) return
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
    usage
  reply.setUsage({
    input: sumTokenCounts(input_tokens, cache_creation_input_tokens, cache_read_input_tokens),
    cached: toTokenCount(cache_read_input_tokens),
    output: toTokenCount(output_tokens),
  })
}

export const anthropicReply: ReplyFormat = {
  parseEvent,
  fieldNames:
    'type content text stop_reason usage input_tokens cache_creation_input_tokens ' +
    'cache_read_input_tokens output_tokens',
}
