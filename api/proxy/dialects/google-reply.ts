import type { ReplyAccumulator } from '#api/proxy/dialects/reply-accumulator.ts'
import {
  isObject,
  objectsIn,
  sumTokenCounts,
  type ReplyFormat,
  type JsonObject,
} from '#api/proxy/dialects/reply-parser.ts'

/** Parses a complete response or a chunk of a streamed one, which have the same form. */
function parseGoogleEvent(event: JsonObject, reply: ReplyAccumulator): void {
  if (isObject(event.error)) reply.markFailed()
  if (isObject(event.usageMetadata)) parseUsage(event.usageMetadata, reply)
  // The response to a blocked prompt has no candidates.
  if (isObject(event.promptFeedback) && event.promptFeedback.blockReason) reply.markComplete()

  const candidate = objectsIn(event.candidates).find(({ index = 0 }) => index === 0)
  if (!candidate) return
  if (isObject(candidate.content)) {
    for (const part of objectsIn(candidate.content.parts)) parsePart(part, reply)
  }
  if (typeof candidate.finishReason === 'string') reply.markComplete()
}

function parsePart(part: JsonObject, reply: ReplyAccumulator): void {
  if (part.thought === true) return
  if ('functionCall' in part) reply.markStep()
  if (typeof part.text === 'string') reply.addText(part.text)
  else reply.addPart(part)
}

/** As with other providers, thinking counts as output, and results of the provider's tools as input. */
function parseUsage(usage: JsonObject, reply: ReplyAccumulator): void {
  reply.setUsage({
    input: sumTokenCounts(usage.promptTokenCount, usage.toolUsePromptTokenCount),
    output: sumTokenCounts(usage.candidatesTokenCount ?? 0, usage.thoughtsTokenCount),
  })
}

export const googleReplyFormat: ReplyFormat = {
  parseEvent: parseGoogleEvent,
  fieldNames: new Set([
    'error',
    'candidates',
    'index',
    'content',
    'parts',
    'text',
    'thought',
    'inlineData',
    'functionCall',
    'executableCode',
    'codeExecutionResult',
    'finishReason',
    'promptFeedback',
    'blockReason',
    'usageMetadata',
    'promptTokenCount',
    'toolUsePromptTokenCount',
    'candidatesTokenCount',
    'thoughtsTokenCount',
  ]),
}
