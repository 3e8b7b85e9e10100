import {
  createNameMatcher,
  forEachMember,
  kindAt,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'

/** The members of a body that tell what kind of reply it asks for. */
export type ReplyRequest = {
  hasTools: boolean
  isStructured: boolean
  maxTokens: number | undefined
}

const matchMember = createNameMatcher([
  'tools',
  'functions',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'maxOutputTokens',
  'response_format',
  'text',
  'output_config',
  'output_format',
  'generationConfig',
  'generation_config',
  'responseSchema',
  'response_schema',
  'responseJsonSchema',
  'response_json_schema',
])

/** Adds the member at these offsets to what a body asks of the reply. */
export function readReplyRequest(
  body: Buffer,
  request: ReplyRequest,
  { name, nameEnd, value, end }: { name: number; nameEnd: number; value: number; end: number },
): void {
  const member = matchMember(body, name, nameEnd)
  if (member === undefined) return
  const kind = kindAt(body, value)
  if (member === 'tools' || member === 'functions') {
    request.hasTools ||= kind === 'array' && hasElement(body, value, end)
  } else if (member.startsWith('max')) {
    const max = kind === 'other' ? parseValue(body, value, end) : undefined
    if (typeof max === 'number') request.maxTokens = max
  } else if (member.startsWith('generation') && kind === 'object') {
    forEachMember(body, value, (inner, innerEnd, at) => {
      const offsets = { name: inner, nameEnd: innerEnd, value: at, end: valueEnd(body, at) }
      if (/^(?:max|response)/.test(matchMember(body, inner, innerEnd) ?? '')) {
        readReplyRequest(body, request, offsets)
      }
      return offsets.end
    })
  } else if (kind === 'object') {
    request.isStructured ||= /schema/i.test(member) || body.subarray(value, end).includes('"json_')
  }
}

function hasElement(body: Buffer, value: number, end: number): boolean {
  for (let at = value + 1; at < end; at++) if (body[at]! > 0x20) return body[at] !== 0x5d
  return false
}
