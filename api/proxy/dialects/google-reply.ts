import type { Heard } from '#api/proxy/dialects/heard.ts'
import { isObject, objectsIn, sumOf, type Ear, type Said } from '#api/proxy/dialects/listen.ts'

/** Hears a whole answer or a piece of a streamed one, which look alike. */
function hear(said: Said, heard: Heard): void {
  if (isObject(said.error)) heard.fail()
  if (isObject(said.usageMetadata)) hearUsage(said.usageMetadata, heard)
  // A question that is not let through gets an answer without candidates.
  if (isObject(said.promptFeedback) && said.promptFeedback.blockReason) heard.complete()

  const candidate = objectsIn(said.candidates).find(({ index = 0 }) => index === 0)
  if (!candidate) return
  if (isObject(candidate.content)) {
    for (const part of objectsIn(candidate.content.parts)) hearPart(part, heard)
  }
  if (typeof candidate.finishReason === 'string') heard.complete()
}

function hearPart(part: Said, heard: Heard): void {
  if (part.thought === true) return
  if (typeof part.text === 'string') heard.say(part.text)
  else heard.show(part)
}

/** Thinking is answered tokens to every other provider; the results of its own tools are asked ones. */
function hearUsage(usage: Said, heard: Heard): void {
  heard.count({
    input: sumOf(usage.promptTokenCount, usage.toolUsePromptTokenCount),
    output: sumOf(usage.candidatesTokenCount ?? 0, usage.thoughtsTokenCount),
  })
}

export const hearGoogle: Ear = {
  hear,
  names: new Set([
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
