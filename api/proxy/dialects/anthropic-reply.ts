import type { ReplyAccumulator } from '#api/proxy/dialects/reply-accumulator.ts'
import {
  toTokenCount,
  isObject,
  objectsIn,
  sumTokenCounts,
  type ReplyFormat,
  type JsonObject,
} from '#api/proxy/dialects/reply-parser.ts'

/**
 * Parses a complete message or an event of its stream. Consecutive text blocks are one text: a response
 * with citations has many.
 */
function parseAnthropicEvent(event: JsonObject, reply: ReplyAccumulator): void {
  if (typeof event.type === 'string') eventParsers[event.type]?.(event, reply)
}

const eventParsers: {
  readonly [type: string]: (event: JsonObject, reply: ReplyAccumulator) => void
} = {
  __proto__: null as never,
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
    reply.markComplete()
  },
  error(_, reply) {
    reply.markFailed()
  },
}

function parseContentBlock(block: JsonObject, reply: ReplyAccumulator): void {
  if (block.type === 'tool_use') reply.markStep()
  if (block.type === 'text') reply.addText(block.text)
  else reply.addPart(block)
}

function parseMessageEnd(message: JsonObject, reply: ReplyAccumulator): void {
  parseUsage(message, reply)
  // A paused reply goes on in the next call.
  if (message.stop_reason === 'pause_turn') reply.markStep()
  if (typeof message.stop_reason === 'string') reply.markComplete()
}

/** Anthropic counts input tokens read from or written to its cache apart from the other ones. */
function parseUsage({ usage }: JsonObject, reply: ReplyAccumulator): void {
  if (!isObject(usage)) return
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
    usage
  reply.setUsage({
    input: sumTokenCounts(input_tokens, cache_creation_input_tokens, cache_read_input_tokens),
    output: toTokenCount(output_tokens),
  })
}

export const anthropicReplyFormat: ReplyFormat = {
  parseEvent: parseAnthropicEvent,
  fieldNames: new Set([
    'type',
    'content',
    'text',
    'stop_reason',
    'usage',
    'input_tokens',
    'cache_creation_input_tokens',
    'cache_read_input_tokens',
    'output_tokens',
  ]),
}
