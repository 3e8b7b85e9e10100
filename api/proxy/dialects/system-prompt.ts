import { readContentParts } from '#api/proxy/dialects/content.ts'
import { forEachMember, kindAt, createNameMatcher, valueEnd } from '#api/proxy/json/walk.ts'
import type { Message } from '#shared/domain/message-content.ts'

const matchPartsField = createNameMatcher(['parts'])

/** The system prompt outside the messages, Anthropic's or Gemini's, as a turn. */
export function systemTurns(body: Buffer, at: number | undefined): Message[] {
  const content = at === undefined ? undefined : findContent(body, at)
  return content === undefined ? [] : [{ role: 'system', content: readContentParts(body, content) }]
}

function findContent(body: Buffer, at: number): number | undefined {
  if (kindAt(body, at) !== 'object') return kindAt(body, at) === 'other' ? undefined : at
  let parts: number | undefined
  forEachMember(body, at, (name, nameEnd, value) => {
    if (matchPartsField(body, name, nameEnd)) parts = value
    return valueEnd(body, value)
  })
  return parts
}
