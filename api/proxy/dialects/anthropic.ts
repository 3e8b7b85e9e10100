import { hearAnthropic } from '#api/proxy/dialects/anthropic-reply.ts'
import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { listenTo } from '#api/proxy/dialects/listen.ts'
import { atHead, saysSomething, type PartFormat } from '#api/proxy/dialects/parts.ts'
import { readRequest, type Format } from '#api/proxy/dialects/request.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'

const parts: PartFormat = {
  names: namesOf(['type', 'cache_control']),
  tell(body, part, name, value) {
    const kind = kindAt(body, value)
    if (name === 'cache_control') part.marked = kind === 'object'
    else part.result = kind === 'string' && isResult(body, value)
  },
  block: context => `{"type":"text","text":${JSON.stringify(context)}}`,
  around: { string: ['{"type":"text","text":', '}'] },
}

const resultWord = '"tool_result"'

function isResult(body: Buffer, at: number): boolean {
  const end = valueEnd(body, at)
  // Six bytes for a character where it is escaped.
  return end - at <= 6 * resultWord.length && JSON.stringify(parsed(body, at, end)) === resultWord
}

/** The block is a text at the head of the last message in which the user speaks, never marked itself. */
const format: Format = {
  messages: 'messages',
  content: 'content',
  lone: false,
  modelRole: 'assistant',
  defaultRole: undefined,
  namesModel: true,
  isUser: (body, entry) => entry.role === 'user' && saysSomething(body, entry, parts),
  place: (body, entry, context) => atHead(body, entry, context, parts),
}

/** Anthropic's messages. */
export const anthropic: Dialect = {
  family: 'anthropic',
  read: body => readRequest(body, format),
  listen: answer => listenTo(answer, hearAnthropic),
}
