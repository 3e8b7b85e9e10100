import type { Heard } from '#api/proxy/dialects/heard.ts'
import {
  countOf,
  isObject,
  objectsIn,
  sumOf,
  type Ear,
  type Said,
} from '#api/proxy/dialects/listen.ts'

/**
 * Hears a whole message or an event of its stream. Text blocks that follow each other are one text: an
 * answer with citations is cut into many.
 */
function hear(said: Said, heard: Heard): void {
  if (typeof said.type === 'string') events[said.type]?.(said, heard)
}

const events: { readonly [type: string]: (said: Said, heard: Heard) => void } = {
  __proto__: null as never,
  message(message, heard) {
    for (const block of objectsIn(message.content)) hearBlock(block, heard)
    hearEnd(message, heard)
  },
  message_start({ message }, heard) {
    if (isObject(message)) hearUsage(message, heard)
  },
  content_block_start({ content_block }, heard) {
    if (isObject(content_block)) hearBlock(content_block, heard)
  },
  content_block_delta({ delta }, heard) {
    if (isObject(delta) && delta.type === 'text_delta') heard.say(delta.text)
  },
  message_delta({ delta, usage }, heard) {
    hearEnd({ ...(isObject(delta) && delta), usage }, heard)
  },
  message_stop(_, heard) {
    heard.complete()
  },
  error(_, heard) {
    heard.fail()
  },
}

function hearBlock(block: Said, heard: Heard): void {
  if (block.type === 'text') heard.say(block.text)
  else heard.show(block)
}

function hearEnd(message: Said, heard: Heard): void {
  hearUsage(message, heard)
  if (typeof message.stop_reason === 'string') heard.complete()
}

/** Anthropic counts what came from its cache, or went into it, apart from the rest of the prompt. */
function hearUsage({ usage }: Said, heard: Heard): void {
  if (!isObject(usage)) return
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } =
    usage
  heard.count({
    input: sumOf(input_tokens, cache_creation_input_tokens, cache_read_input_tokens),
    output: countOf(output_tokens),
  })
}

export const hearAnthropic: Ear = {
  hear,
  names: new Set([
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
