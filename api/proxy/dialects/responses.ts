import { ResponsesBody } from '#api/contract/contract.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import {
  cachedCount,
  isObject,
  objectsIn,
  parseByType,
  toTokenCount,
  type JsonObject,
  type ParseEvent,
  type ReplyAccumulator,
  type ReplyFormat,
} from '#api/proxy/dialects/reply.ts'

/**
 * OpenAI's Responses, and the providers that speak them.
 *
 * The context block is a user item of its own before the last user item, or after it when parts of that
 * have a `cache_control`, as in chat completions. `input` as one text becomes a list of two items.
 * What a provider keeps of earlier calls (`previous_response_id`, `conversation`) is not rewritten.
 */
export const responsesRequest: RequestFormat = {
  bodyShape: ResponsesBody,
  messages: 'input',
  content: 'content',
  singleMessage: 'string',
  hasModelInBody: true,
  modelRole: 'assistant',
  // Results of tools by the end of their type, tools that a client declares inside the input, and everything else
  // (reasoning, calls of tools, references) as the model's.
  roleOfItem(type) {
    if (type === 'additional_tools') return 'developer'
    return type !== undefined && /_(?:output|response)$/.test(type) ? 'tool' : 'assistant'
  },
  // Reasoning or a call of a tool, not the beginning of an answer: the model has worked on the turn.
  isPausedReply: (_, content) => content === undefined,
  cacheControl: 'parts',
  block: {
    as: 'message',
    toJson: context =>
      `{"type":"message","role":"user","content":[{"type":"input_text","text":${JSON.stringify(context)}}]}`,
  },
  wrappers: { string: ['{"role":"user","content":', '}'] },
}

const parseDelta: ParseEvent = ({ delta }, reply) => reply.addText(delta)

const parseEnd: ParseEvent = ({ response }, reply) => {
  if (isObject(response)) parseResponse(response, reply)
  else reply.complete = true
}

/**
 * A complete response, which has no `type`, or an event of its stream. The text of a stream is that
 * of its deltas; of a part or item without deltas, that of its end; of a stream without either, that of the response
 * in its last event.
 */
const parseEvent = parseByType(
  {
    'response.output_item.added'({ item }, reply) {
      if (isObject(item)) parseItemStart(item, reply)
    },
    'response.output_item.done'({ item }, reply) {
      if (!isObject(item)) return
      if (item.type === 'message' && reply.isPartEmpty) addMessageText(item, reply)
      reply.addPart(null)
    },
    'response.output_text.done'({ text }, reply) {
      if (reply.isPartEmpty) reply.addText(text)
    },
    'response.refusal.done'({ refusal }, reply) {
      if (reply.isPartEmpty) reply.addText(refusal)
    },
    'response.output_text.delta': parseDelta,
    'response.refusal.delta': parseDelta,
    'response.completed': parseEnd,
    'response.incomplete': parseEnd,
    // The name that aggregators give to the last event.
    'response.done': parseEnd,
    'response.failed'(event, reply) {
      parseEnd(event, reply)
      reply.failed = true
    },
    error(_, reply) {
      reply.failed = true
    },
  },
  parseResponse,
)

/**
 * A response that still runs in the background is complete without a text: the provider has taken the
 * call, and gives its text when it is asked for it.
 */
function parseResponse(response: JsonObject, reply: ReplyAccumulator): void {
  const { status, error, output, usage } = response
  if (isObject(usage)) {
    reply.setUsage({
      input: toTokenCount(usage.input_tokens),
      cached: cachedCount(usage.input_tokens_details),
      output: toTokenCount(usage.output_tokens),
    })
  }
  if (status === 'failed' || isObject(error) || typeof error === 'string') {
    reply.failed = true
    return
  }
  if (reply.isEmpty) for (const item of objectsIn(output)) parseItem(item, reply)
  if (objectsIn(output).some(({ type }) => clientCalls.has(type))) reply.isStep = true
  reply.complete = true
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
  if (clientCalls.has(item.type)) reply.isStep = true
  reply.addPart(item.type === 'image_generation_call' ? { type: item.type } : null)
}

export const responsesReply: ReplyFormat = {
  parseEvent,
  fieldNames:
    'type status error output content text refusal usage input_tokens input_tokens_details ' +
    'cached_tokens output_tokens',
}
