import type { Dialect } from '#api/proxy/dialects/dialect.ts'
import { hearGoogle } from '#api/proxy/dialects/google-reply.ts'
import { listenTo } from '#api/proxy/dialects/listen.ts'
import { atPart, headOf, saysSomething, type PartFormat } from '#api/proxy/dialects/parts.ts'
import { readRequest } from '#api/proxy/dialects/request.ts'
import { namesOf } from '#api/proxy/json/walk.ts'
import type { Format } from '#api/proxy/dialects/format.ts'

const parts: PartFormat = {
  names: namesOf(['functionResponse', 'function_response']),
  tell(_, part) {
    part.result = true
  },
  block: context => `{"text":${JSON.stringify(context)}}`,
  around: { object: ['', ''] },
}

/**
 * The block is a part at the head of the last content in which the user speaks. A content without a role
 * is the user's. Google also takes one object where an array of contents or parts is meant, and its own
 * examples make use of that.
 */
const format: Format = {
  messages: 'contents',
  content: 'parts',
  lone: true,
  modelRole: 'model',
  defaultRole: 'user',
  namesModel: false,
  marksAll: false,
  isUser: (body, entry) => entry.role === 'user' && saysSomething(body, entry, parts),
  placeIn: (body, entry) => headOf(body, entry, parts, false),
  place: (body, entry, block) => atPart(body, entry, block, parts),
}

/** Gemini's contents. */
export const google: Dialect = {
  family: 'google',
  read: body => readRequest(body, format),
  listen: answer => listenTo(answer, hearGoogle),
}
