import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { readRequest, type Format } from '#api/proxy/dialects/request.ts'
import { listenTo } from '#api/proxy/dialects/listen.ts'
import { hearOpenai } from '#api/proxy/dialects/openai-reply.ts'

/**
 * The block is a message of its own, and the user's. A system message in mid conversation would be
 * stronger than remembered text should be, and not everybody takes one: Mistral and the chat templates
 * of many open models refuse it, and the compatible endpoints of Anthropic and Google move it up into
 * the system prompt, where it would change the cached beginning of every call. `developer` is known to
 * OpenAI alone. Two user messages in a row are taken everywhere, and the block says by itself that it is
 * background.
 */
const format: Format = {
  messages: 'messages',
  content: 'content',
  lone: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  namesModel: true,
  isUser: (_, { role }) => role === 'user',
  place: (_, { start }, context) => [
    { at: start, text: `{"role":"user","content":${JSON.stringify(context)}},` },
  ],
}

/** OpenAI's chat completions, and the many providers that speak them. */
export const openai: Dialect = {
  family: 'openai',
  read: body => readRequest(body, format),
  listen: answer => listenTo(answer, hearOpenai),
}
