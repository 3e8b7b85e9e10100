import type { ReplyAccumulator } from '#api/proxy/dialects/reply-accumulator.ts'
import {
  toTokenCount,
  isObject,
  objectsIn,
  type ReplyFormat,
  type JsonObject,
} from '#api/proxy/dialects/reply-parser.ts'

/** Parses a complete completion with its `message`, or a chunk of one with its `delta`. */
function parseOpenaiEvent(event: JsonObject, reply: ReplyAccumulator): void {
  if (isObject(event.error) || typeof event.error === 'string') reply.markFailed()
  const usage = isObject(event.usage)
    ? event.usage
    : isObject(event.x_groq)
      ? event.x_groq.usage
      : {}
  if (isObject(usage)) {
    reply.setUsage({
      input: toTokenCount(usage.prompt_tokens),
      output: toTokenCount(usage.completion_tokens),
    })
  }
  // Of several choices the first is stored: clients most likely continue with it.
  const choice = objectsIn(event.choices).find(({ index = 0 }) => index === 0)
  if (!choice) return
  const message = isObject(choice.delta) ? choice.delta : choice.message
  if (isObject(message)) parseMessage(message, reply)
  if (choice.finish_reason === 'error' || isObject(choice.error)) reply.markFailed()
  if (typeof choice.finish_reason === 'string') reply.markComplete()
}

/** A refusal and the transcript of audio count as text. */
function parseMessage(message: JsonObject, reply: ReplyAccumulator): void {
  const { content, refusal, audio, tool_calls, function_call } = message
  if (objectsIn(tool_calls).length > 0 || isObject(function_call)) reply.markStep()
  for (const part of objectsIn(content)) {
    if (typeof part.refusal === 'string') reply.addText(part.refusal)
    else if (typeof part.text === 'string') reply.addText(part.text)
    else reply.addPart(part)
  }
  reply.addText(content)
  reply.addText(refusal)
  if (isObject(audio)) reply.addText(audio.transcript)
}

export const openaiReplyFormat: ReplyFormat = {
  parseEvent: parseOpenaiEvent,
  fieldNames: new Set([
    'error',
    'usage',
    'prompt_tokens',
    'completion_tokens',
    'x_groq',
    'choices',
    'index',
    'message',
    'delta',
    'finish_reason',
    'content',
    'type',
    'text',
    'refusal',
    'audio',
    'transcript',
    'tool_calls',
    'function_call',
  ]),
}
