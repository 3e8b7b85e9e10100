import {
  createNameMatcher,
  forEachMember,
  kindAt,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'

const matchMember = createNameMatcher([
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'maxOutputTokens',
  'generationConfig',
  'generation_config',
])

/** How many tokens a member of a body allows the reply; undefined where it does not say. */
export function readMaxTokens(
  body: Buffer,
  { name, nameEnd, value, end }: { name: number; nameEnd: number; value: number; end: number },
): number | undefined {
  const member = matchMember(body, name, nameEnd)
  if (member === undefined) return undefined
  const kind = kindAt(body, value)
  if (member.startsWith('max')) {
    const max = kind === 'other' ? parseValue(body, value, end) : undefined
    return typeof max === 'number' ? max : undefined
  }
  if (kind !== 'object') return undefined
  let inside: number | undefined
  forEachMember(body, value, (inner, innerEnd, at) => {
    const offsets = { name: inner, nameEnd: innerEnd, value: at, end: valueEnd(body, at) }
    inside = readMaxTokens(body, offsets) ?? inside
    return offsets.end
  })
  return inside
}
