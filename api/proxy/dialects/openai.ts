import { ChatBody } from '#api/contract/contract.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import {
  cachedCount,
  isObject,
  objectsIn,
  toTokenCount,
  type JsonObject,
  type ReplyAccumulator,
  type ReplyFormat,
} from '#api/proxy/dialects/reply.ts'

/**
 * OpenAI's chat completions, and the many providers that speak them.
 *
 * The context block is a user message of its own. A system message amid a conversation would weigh more
 * than recalled text should, and is not accepted everywhere: Mistral and the chat templates of many open
 * models refuse it, and the compatible endpoints of Anthropic and Google move it into the system prompt,
 * where it would change the cached prefix of every call. Only OpenAI knows `developer`. Two consecutive
 * user messages are accepted everywhere, and the block's text says that it is background.
 *
 * It precedes the user's message, or follows it when parts of that have a `cache_control`, which
 * aggregators pass on to Anthropic.
 */
export const openaiRequest: RequestFormat = {
  bodyShape: ChatBody,
  messages: 'messages',
  content: 'content',
  hasModelInBody: true,
  modelRole: 'assistant',
  cacheControl: 'parts',
  block: {
    as: 'message',
    toJson: context => `{"role":"user","content":${JSON.stringify(context)}}`,
  },
  wrappers: {},
}

/** A complete completion with its `message`, or a chunk of one with its `delta`. */
function parseEvent(event: JsonObject, reply: ReplyAccumulator): void {
  const { error, x_groq, choices } = event
  if (isObject(error) || typeof error === 'string') reply.failed = true
  const usage = isObject(event.usage) ? event.usage : isObject(x_groq) ? x_groq.usage : {}
  if (isObject(usage)) {
    reply.setUsage({
      input: toTokenCount(usage.prompt_tokens),
      cached:
        cachedCount(usage.prompt_tokens_details) ?? toTokenCount(usage.prompt_cache_hit_tokens),
      output: toTokenCount(usage.completion_tokens),
    })
  }
  // The first of several choices is stored: clients most likely continue with it.
  const choice = objectsIn(choices).find(({ index = 0 }) => index === 0)
  if (!choice) return
  const message = isObject(choice.delta) ? choice.delta : choice.message
  if (isObject(message)) parseMessage(message, reply)
  if (choice.finish_reason === 'error' || isObject(choice.error)) reply.failed = true
  if (typeof choice.finish_reason === 'string') reply.complete = true
}

/** A refusal and the transcript of audio count as text. */
function parseMessage(message: JsonObject, reply: ReplyAccumulator): void {
  const { content, refusal, audio, tool_calls, function_call } = message
  if (objectsIn(tool_calls).length > 0 || isObject(function_call)) reply.isStep = true
  for (const part of objectsIn(content)) {
    if (typeof part.refusal === 'string') reply.addText(part.refusal)
    else if (typeof part.text === 'string') reply.addText(part.text)
    else reply.addPart(part)
  }
  reply.addText(content)
  reply.addText(refusal)
  if (isObject(audio)) reply.addText(audio.transcript)
}

export const openaiReply: ReplyFormat = {
  parseEvent,
  fieldNames:
    'error usage prompt_tokens prompt_tokens_details cached_tokens prompt_cache_hit_tokens ' +
    'completion_tokens x_groq choices index message delta finish_reason ' +
    'content type text refusal audio transcript tool_calls function_call',
}
