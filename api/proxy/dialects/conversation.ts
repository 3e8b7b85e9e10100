import { textFrom } from '#api/proxy/dialects/content.ts'
import { eachKept, type Cuts } from '#api/proxy/json/splice.ts'
import { eachElement, kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/core/errors.ts'
import { turnsOf, type Message } from '#shared/domain/turn-content.ts'
import { wellFormedText } from '#shared/core/sanitize-text.ts'
import type { Format, Entry } from '#api/proxy/dialects/format.ts'

/** As many as `POST /v1/memory/ingest` takes. Of a longer conversation memory reads the newest. */
const readMax = 10_000

/** No message of a client that means it is longer than these. */
const roleBytesMax = 64
const speakerBytesMax = 1024

const memberName = namesOf(['role', 'content', 'parts', 'memory', 'name'])

/**
 * Reads the messages of the array (or of the one object) that begins at `at`, and cuts every `memory`
 * out of them.
 *
 * @throws Refusal `invalid` for a `memory` that is neither boolean nor null: it could have meant that a
 *   message stays private.
 */
export function conversationAt(
  body: Buffer,
  at: number,
  format: Format,
  cuts: Cuts,
): { entries: Entry[]; end: number } {
  let entries: Entry[] = []
  let count = 0
  const visit = (element: number): number => {
    const index = count++
    if (kindAt(body, element) !== 'object') return valueEnd(body, element)
    const entry = emptyEntry(element, format)
    const end = readEntry(body, entry, index, format, cuts)
    entries.push(entry)
    if (entries.length >= 2 * readMax) entries = entries.slice(-readMax)
    return end
  }
  const kind = kindAt(body, at)
  const lone = kind === 'object' && format.lone
  const end =
    kind === 'array' ? eachElement(body, at, visit) : lone ? visit(at) : valueEnd(body, at)
  return { entries: entries.slice(-readMax), end }
}

const emptyEntry = (start: number, { defaultRole }: Format): Entry => ({
  start,
  role: defaultRole,
  content: undefined,
  memory: undefined,
  name: undefined,
})

function readEntry(body: Buffer, entry: Entry, index: number, format: Format, cuts: Cuts): number {
  const isSwitch = (start: number, nameEnd: number, value: number): boolean => {
    if (memberName(body, start, nameEnd) !== 'memory') return false
    entry.memory = storedOrNot(body, value, `${format.messages}/${index}/memory`)
    return true
  }
  return eachKept(body, entry.start, cuts, isSwitch, (start, nameEnd, value) => {
    const name = memberName(body, start, nameEnd)
    const end = valueEnd(body, value)
    if (name === format.content) entry.content = value
    else if (name === 'role') entry.role = stringAt(body, value, end, roleBytesMax)
    else if (name === 'name') entry.name = speakerAt(body, value, end)
    return end
  })
}

function storedOrNot(body: Buffer, at: number, field: string): boolean | undefined {
  const first = body[at]
  if (first === 0x74) return true
  if (first === 0x66) return false
  if (first === 0x6e) return undefined
  throw new Refusal(
    'invalid',
    `${field} must be boolean`,
    'Send false to keep this message out of the vault',
  )
}

function stringAt(body: Buffer, at: number, end: number, bytesMax: number): string | undefined {
  if (kindAt(body, at) !== 'string' || end - at > bytesMax) return undefined
  return wellFormedText(parsed(body, at, end) as string)
}

/** A name that cannot stand in a memory is none. */
function speakerAt(body: Buffer, at: number, end: number): string | undefined {
  const name = stringAt(body, at, end, speakerBytesMax)
  return name !== undefined && /^[^\p{Cc}\u2028\u2029]{1,256}$/u.test(name) ? name : undefined
}

/** An entry as memory knows it: its text instead of the provider's parts. */
export function messageOf(body: Buffer, { role, content, memory, name }: Entry): Message {
  return {
    role: role ?? '',
    content: content === undefined ? '' : textFrom(body, content),
    ...(memory !== undefined && { memory }),
    ...(name !== undefined && { name }),
  }
}

/**
 * What the user says in this exchange: the user turns after the last model turn. A model turn at the
 * very end is no turn that is over but the beginning of the answer, which some clients write
 * themselves. System messages may stand anywhere.
 *
 * @returns without echoes of our block; nothing when the last turn is not the user's.
 */
export function saidIn(body: Buffer, entries: readonly Entry[], format: Format): Message[] {
  const { modelRole, isUser } = format
  let end = entries.length
  while (end > 0 && entries[end - 1]!.role === modelRole) end--
  const begin = entries.findLastIndex(({ role }, index) => index < end && role === modelRole) + 1
  const since = entries.slice(begin, end).filter(({ role }) => !systemRoles.has(role))
  const users = since.filter(entry => isUser(body, entry))
  if (users.at(-1) !== since.at(-1)) return []
  return users
    .flatMap(entry => turnsOf([messageOf(body, entry)]))
    .map(({ text, speaker }) => ({
      role: 'user',
      content: text,
      ...(speaker !== undefined && { name: speaker }),
    }))
}

/** Whose messages are no part of a conversation. */
export const systemRoles = new Set<string | undefined>(['system', 'developer'])
