import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { hearOpenai } from '#api/proxy/dialects/openai-reply.ts'
import { listenTo } from '#api/proxy/dialects/listen.ts'
import { hasMark, type PartFormat } from '#api/proxy/dialects/parts.ts'
import { readRequest } from '#api/proxy/dialects/request.ts'
import { kindAt, namesOf, valueEnd } from '#api/proxy/json/walk.ts'
import type { Format } from '#api/proxy/dialects/format.ts'

const parts: PartFormat = {
  names: namesOf(['cache_control']),
  tell(body, part, _, value) {
    part.marked = kindAt(body, value) === 'object'
  },
  block: context => `{"role":"user","content":${JSON.stringify(context)}}`,
  around: {},
}

/**
 * The block is a message of its own, and the user's. A system message in mid conversation would be
 * stronger than remembered text should be, and not everybody takes one: Mistral and the chat templates
 * of many open models refuse it, and the compatible endpoints of Anthropic and Google move it up into
 * the system prompt, where it would change the cached beginning of every call. `developer` is known to
 * OpenAI alone. Two user messages in a row are taken everywhere, and the block says by itself that it is
 * background.
 *
 * It comes before the user's message; after it when parts of that are marked for caching, as aggregators
 * pass on to Anthropic.
 */
const format: Format = {
  messages: 'messages',
  content: 'content',
  lone: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  namesModel: true,
  marksAll: false,
  isUser: (_, { role }) => role === 'user',
  placeIn: (body, entry) => (hasMark(body, entry, parts) ? 1 : 0),
  place: (body, { start }, { context, place }) => [
    place > 0
      ? { at: valueEnd(body, start), text: `,${parts.block(context)}` }
      : { at: start, text: `${parts.block(context)},` },
  ],
}

/** OpenAI's chat completions, and the many providers that speak them. */
export const openai: Dialect = {
  family: 'openai',
  read: body => readRequest(body, format),
  listen: answer => listenTo(answer, hearOpenai),
}
