import { textFrom } from '#api/proxy/dialects/content.ts'
import { eachMember, kindAt, namesOf, valueEnd } from '#api/proxy/json/walk.ts'
import type { Message } from '#shared/domain/turn-content.ts'

const partsName = namesOf(['parts'])

/** The system prompt that stands beside the conversation, Anthropic's or Gemini's, as a turn. */
export function systemTurns(body: Buffer, at: number | undefined): Message[] {
  const content = at === undefined ? undefined : contentAt(body, at)
  return content === undefined ? [] : [{ role: 'system', content: textFrom(body, content) }]
}

function contentAt(body: Buffer, at: number): number | undefined {
  if (kindAt(body, at) !== 'object') return kindAt(body, at) === 'other' ? undefined : at
  let parts: number | undefined
  eachMember(body, at, (name, nameEnd, value) => {
    if (partsName(body, name, nameEnd)) parts = value
    return valueEnd(body, value)
  })
  return parts
}
