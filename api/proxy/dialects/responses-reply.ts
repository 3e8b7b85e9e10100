import type { ReplyAccumulator } from '#api/proxy/dialects/reply-accumulator.ts'
import {
  isObject,
  objectsIn,
  toTokenCount,
  type JsonObject,
  type ReplyFormat,
} from '#api/proxy/dialects/reply-parser.ts'

/**
 * Parses a complete response, which has no `type`, or an event of its stream. The text of a stream is that
 * of its deltas; of a part or item without deltas, that of its end; of a stream without either, that of the response
 * in its last event.
 */
function parseResponsesEvent(event: JsonObject, reply: ReplyAccumulator): void {
  if (typeof event.type === 'string') eventParsers[event.type]?.(event, reply)
  else parseResponse(event, reply)
}

type ParseStreamEvent = (event: JsonObject, reply: ReplyAccumulator) => void

const parseDelta: ParseStreamEvent = ({ delta }, reply) => reply.addText(delta)

const parseEnd: ParseStreamEvent = ({ response }, reply) => {
  if (isObject(response)) parseResponse(response, reply)
  else reply.markComplete()
}

const eventParsers: { readonly [type: string]: ParseStreamEvent } = {
  __proto__: null as never,
  'response.output_item.added'({ item }, reply) {
    if (isObject(item)) parseItemStart(item, reply)
  },
  'response.output_item.done'({ item }, reply) {
    if (!isObject(item)) return
    if (item.type === 'message' && reply.isPartEmpty()) addMessageText(item, reply)
    reply.addPart(null)
  },
  'response.output_text.done'({ text }, reply) {
    if (reply.isPartEmpty()) reply.addText(text)
  },
  'response.refusal.done'({ refusal }, reply) {
    if (reply.isPartEmpty()) reply.addText(refusal)
  },
  'response.output_text.delta': parseDelta,
  'response.refusal.delta': parseDelta,
  'response.completed': parseEnd,
  'response.incomplete': parseEnd,
  // The name that aggregators give to the last event.
  'response.done': parseEnd,
  'response.failed'(event, reply) {
    parseEnd(event, reply)
    reply.markFailed()
  },
  error(_, reply) {
    reply.markFailed()
  },
}

/**
 * A response that still runs in the background is complete without a text: the provider has taken the
 * call, and gives its text when it is asked for it.
 */
function parseResponse(response: JsonObject, reply: ReplyAccumulator): void {
  const { status, error, output, usage } = response
  if (isObject(usage)) {
    reply.setUsage({
      input: toTokenCount(usage.input_tokens),
      output: toTokenCount(usage.output_tokens),
    })
  }
  if (status === 'failed' || isObject(error) || typeof error === 'string') return reply.markFailed()
  if (reply.isEmpty()) for (const item of objectsIn(output)) parseItem(item, reply)
  if (objectsIn(output).some(({ type }) => clientCalls.has(type))) reply.markStep()
  reply.markComplete()
}

function parseItem(item: JsonObject, reply: ReplyAccumulator): void {
  parseItemStart(item, reply)
  if (item.type === 'message') addMessageText(item, reply)
}

function addMessageText(item: JsonObject, reply: ReplyAccumulator): void {
  for (const { type, text, refusal } of objectsIn(item.content)) {
    reply.addText(type === 'refusal' ? refusal : text)
  }
}

/** Calls of tools that the client runs. */
const clientCalls = new Set<unknown>([
  'function_call',
  'custom_tool_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
  'mcp_approval_request',
])

/** Items are lines of their own; of tool calls only a picture leaves a placeholder. */
function parseItemStart(item: JsonObject, reply: ReplyAccumulator): void {
  if (clientCalls.has(item.type)) reply.markStep()
  reply.addPart(item.type === 'image_generation_call' ? { type: item.type } : null)
}

export const responsesReplyFormat: ReplyFormat = {
  parseEvent: parseResponsesEvent,
  fieldNames: new Set([
    'type',
    'status',
    'error',
    'output',
    'content',
    'text',
    'refusal',
    'usage',
    'input_tokens',
    'output_tokens',
  ]),
}
