import type { Heard } from '#api/proxy/dialects/heard.ts'
import { countOf, isObject, objectsIn, type Ear, type Said } from '#api/proxy/dialects/listen.ts'

/** Hears a whole completion, or a chunk of one: what a message is there, a delta is here. */
function hear(said: Said, heard: Heard): void {
  if (isObject(said.error) || typeof said.error === 'string') heard.fail()
  const usage = isObject(said.usage) ? said.usage : isObject(said.x_groq) ? said.x_groq.usage : {}
  if (isObject(usage)) {
    heard.count({ input: countOf(usage.prompt_tokens), output: countOf(usage.completion_tokens) })
  }
  // Of several choices a client goes on with one, most likely the first.
  const choice = objectsIn(said.choices).find(({ index = 0 }) => index === 0)
  if (!choice) return
  const message = isObject(choice.delta) ? choice.delta : choice.message
  if (isObject(message)) hearMessage(message, heard)
  if (choice.finish_reason === 'error' || isObject(choice.error)) heard.fail()
  if (typeof choice.finish_reason === 'string') heard.complete()
}

/** A refusal is what the model says, and so is the transcript of a voice. */
function hearMessage({ content, refusal, audio }: Said, heard: Heard): void {
  for (const part of objectsIn(content)) {
    if (typeof part.refusal === 'string') heard.say(part.refusal)
    else if (typeof part.text === 'string') heard.say(part.text)
    else heard.show(part)
  }
  heard.say(content)
  heard.say(refusal)
  if (isObject(audio)) heard.say(audio.transcript)
}

export const hearOpenai: Ear = {
  hear,
  names: new Set([
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
  ]),
}
