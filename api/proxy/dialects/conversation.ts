import { readContentText } from '#api/proxy/dialects/content.ts'
import { forEachRetainedMember, type Removals } from '#api/proxy/json/splice.ts'
import {
  forEachElement,
  kindAt,
  createNameMatcher,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/core/errors.ts'
import { parseTurns, type Message } from '#shared/domain/message-content.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'

/** As in `POST /v1/memory/ingest`. Of a longer conversation memory reads the newest messages. */
const messagesMax = 10_000

/** Longer roles and names are ignored. */
const roleBytesMax = 64
const speakerBytesMax = 1024

const matchMessageField = createNameMatcher(['role', 'content', 'parts', 'memory', 'name'])

/**
 * Reads the messages of the array (or the one object) that begins at `at`, and adds each `memory` member
 * to the removals.
 *
 * @throws Refusal `invalid` for a `memory` that is neither boolean nor null: the client may have
 *   meant a private message.
 */
export function readConversation(
  body: Buffer,
  at: number,
  format: RequestFormat,
  removals: Removals,
): { entries: RawMessage[]; end: number } {
  let entries: RawMessage[] = []
  let count = 0
  const visit = (element: number): number => {
    const index = count++
    if (kindAt(body, element) !== 'object') return valueEnd(body, element)
    const entry = emptyMessage(element, format)
    const end = readMessage(body, entry, index, format, removals)
    entries.push(entry)
    if (entries.length >= 2 * messagesMax) entries = entries.slice(-messagesMax)
    return end
  }
  const kind = kindAt(body, at)
  const isSingleMessage = kind === 'object' && format.singleMessageAllowed
  const end =
    kind === 'array'
      ? forEachElement(body, at, visit)
      : isSingleMessage
        ? visit(at)
        : valueEnd(body, at)
  return { entries: entries.slice(-messagesMax), end }
}

const emptyMessage = (start: number, { defaultRole }: RequestFormat): RawMessage => ({
  start,
  role: defaultRole,
  content: undefined,
  memory: undefined,
  name: undefined,
})

function readMessage(
  body: Buffer,
  entry: RawMessage,
  index: number,
  format: RequestFormat,
  removals: Removals,
): number {
  const isSwitch = (start: number, nameEnd: number, value: number): boolean => {
    if (matchMessageField(body, start, nameEnd) !== 'memory') return false
    entry.memory = readMemoryFlag(body, value, `${format.messagesField}/${index}/memory`)
    return true
  }
  return forEachRetainedMember(body, entry.start, removals, isSwitch, (start, nameEnd, value) => {
    const name = matchMessageField(body, start, nameEnd)
    const end = valueEnd(body, value)
    if (name === format.contentField) entry.content = value
    else if (name === 'role') entry.role = readShortString(body, value, end, roleBytesMax)
    else if (name === 'name') entry.name = readSpeakerName(body, value, end)
    return end
  })
}

function readMemoryFlag(body: Buffer, at: number, field: string): boolean | undefined {
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

function readShortString(
  body: Buffer,
  at: number,
  end: number,
  bytesMax: number,
): string | undefined {
  if (kindAt(body, at) !== 'string' || end - at > bytesMax) return undefined
  return sanitizeText(parseValue(body, at, end) as string)
}

/** A name that a memory cannot hold is ignored. */
function readSpeakerName(body: Buffer, at: number, end: number): string | undefined {
  const name = readShortString(body, at, end, speakerBytesMax)
  return name !== undefined && /^[^\p{Cc}\u2028\u2029]{1,256}$/u.test(name) ? name : undefined
}

/** The message with its text in place of the provider's parts. */
export function toMessage(body: Buffer, { role, content, memory, name }: RawMessage): Message {
  return {
    role: role ?? '',
    content: content === undefined ? '' : readContentText(body, content),
    ...(memory !== undefined && { memory }),
    ...(name !== undefined && { name }),
  }
}

/**
 * The user turns after the last model turn. A model turn at the end is a prefilled beginning of the
 * reply and does not count. System messages may come anywhere.
 *
 * @returns them without repeated context blocks; none when the last turn is not the user's.
 */
export function extractNewUserMessages(
  body: Buffer,
  entries: readonly RawMessage[],
  format: RequestFormat,
): Message[] {
  const { modelRole, isUserMessage } = format
  let end = entries.length
  while (end > 0 && entries[end - 1]!.role === modelRole) end--
  const begin = entries.findLastIndex(({ role }, index) => index < end && role === modelRole) + 1
  const afterModelTurn = entries.slice(begin, end).filter(({ role }) => !systemRoles.has(role))
  const users = afterModelTurn.filter(entry => isUserMessage(body, entry))
  if (users.at(-1) !== afterModelTurn.at(-1)) return []
  return users
    .flatMap(entry => parseTurns([toMessage(body, entry)]))
    .map(({ text, speaker }) => ({
      role: 'user',
      content: text,
      ...(speaker !== undefined && { name: speaker }),
    }))
}

/** Roles whose messages are no part of a conversation. */
export const systemRoles = new Set<string | undefined>(['system', 'developer'])
