import { hearAnthropic } from '#api/proxy/dialects/anthropic-reply.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { listenTo } from '#api/proxy/dialects/listen.ts'
import {
  atPart,
  headOf,
  saysSomething,
  usesTools,
  type PartFormat,
} from '#api/proxy/dialects/parts.ts'
import { readRequest } from '#api/proxy/dialects/request.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import type { Format } from '#api/proxy/dialects/format.ts'

const parts: PartFormat = {
  names: namesOf(['type', 'cache_control']),
  tell(body, part, name, value) {
    const kind = kindAt(body, value)
    if (name === 'cache_control') part.marked = kind === 'object'
    else {
      part.result = kind === 'string' && isWord(body, value, 'tool_result')
      part.text = kind === 'string' && isWord(body, value, 'text')
    }
  },
  block: context => `{"type":"text","text":${JSON.stringify(context)}}`,
  around: { string: ['{"type":"text","text":', '}'] },
}

function isWord(body: Buffer, at: number, word: string): boolean {
  const end = valueEnd(body, at)
  // Six bytes for a character where it is escaped.
  return end - at <= 6 * word.length + 2 && parsed(body, at, end) === word
}

/**
 * The block is a text at the head of the last message in which the user speaks, never marked itself. What
 * the client has marked there comes before it: a cache that ended in the block would never be found again.
 * A mark for the whole request means the last block of it, which would be ours: it is set on the client's.
 */
const format: Format = {
  messages: 'messages',
  content: 'content',
  lone: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  namesModel: true,
  marksAll: true,
  isUser: (body, entry) => entry.role === 'user' && saysSomething(body, entry, parts),
  isPaused: (body, entry) => usesTools(body, entry, parts),
  placeIn: (body, entry, marked) => headOf(body, entry, parts, marked),
  place: (body, entry, block) => atPart(body, entry, block, parts),
}

/** Anthropic's messages. */
export const anthropic: Dialect = {
  family: 'anthropic',
  read: body => readRequest(body, format),
  listen: answer => listenTo(answer, hearAnthropic),
}
