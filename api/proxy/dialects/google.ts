import { GeminiBody } from '#api/contract/contract.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import {
  isObject,
  objectsIn,
  sumTokenCounts,
  toTokenCount,
  type JsonObject,
  type ReplyAccumulator,
  type ReplyFormat,
} from '#api/proxy/dialects/reply.ts'

/**
 * Gemini's contents.
 *
 * The context block is a part at the beginning of the last user content. A content without a role is the
 * user's. Google accepts one object in place of an array of contents or parts, and its examples use that.
 */
export const googleRequest: RequestFormat = {
  bodyShape: GeminiBody,
  messages: 'contents',
  content: 'parts',
  singleMessage: 'object',
  hasModelInBody: false,
  modelRole: 'model',
  defaultRole: 'user',
  isToolResult: (_, { fields: { functionResponse, function_response } }) =>
    (functionResponse ?? function_response) !== undefined,
  block: { as: 'part', toJson: context => `{"text":${JSON.stringify(context)}}` },
  wrappers: { object: ['', ''] },
}

/** A complete response or a chunk of a streamed one, which have the same form. */
function parseEvent(event: JsonObject, reply: ReplyAccumulator): void {
  const { error, usageMetadata, promptFeedback, candidates } = event
  if (isObject(error)) reply.failed = true
  if (isObject(usageMetadata)) parseUsage(usageMetadata, reply)
  // The response to a blocked prompt has no candidates.
  if (isObject(promptFeedback) && promptFeedback.blockReason) reply.complete = true

  const candidate = objectsIn(candidates).find(({ index = 0 }) => index === 0)
  if (!candidate) return
  if (isObject(candidate.content)) {
    for (const part of objectsIn(candidate.content.parts)) parsePart(part, reply)
  }
  if (typeof candidate.finishReason === 'string') reply.complete = true
}

function parsePart(part: JsonObject, reply: ReplyAccumulator): void {
  if (part.thought === true) return
  if ('functionCall' in part) reply.isStep = true
  if (typeof part.text === 'string') reply.addText(part.text)
  else reply.addPart(part)
}

/** As with other providers, thinking counts as output, and results of the provider's tools as input. */
function parseUsage(usage: JsonObject, reply: ReplyAccumulator): void {
  reply.setUsage({
    input: sumTokenCounts(usage.promptTokenCount, usage.toolUsePromptTokenCount),
    cached: toTokenCount(usage.cachedContentTokenCount),
    output: sumTokenCounts(usage.candidatesTokenCount ?? 0, usage.thoughtsTokenCount),
  })
}

export const googleReply: ReplyFormat = {
  parseEvent,
  fieldNames:
    'error candidates index content parts text thought inlineData functionCall executableCode ' +
    'codeExecutionResult finishReason promptFeedback blockReason usageMetadata promptTokenCount ' +
    'toolUsePromptTokenCount cachedContentTokenCount candidatesTokenCount thoughtsTokenCount',
}
