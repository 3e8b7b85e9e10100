import type { MessageReader } from '#api/proxy/dialects/message-reader.ts'
import { forEachRetainedMember, type Removals } from '#api/proxy/json/splice.ts'
import {
  createNameMatcher,
  firstElement,
  isArrayEnd,
  kindAt,
  nextElement,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Message } from '#shared/domain/message-content.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import type { RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'

/** As in `POST /v1/memory/ingest`. Of a longer conversation memory reads the newest messages. */
const messagesMax = 10_000

/** Longer roles, types and names are ignored; an escape spells one character with six bytes. */
const roleBytesMax = 64
const typeBytesMax = 256
const speakerBytesMax = 1024

const matchMessageField = createNameMatcher(['role', 'type', 'content', 'parts', 'memory', 'name'])

/** The messages of a body, with what is removed from them, and where they end. */
export type RawConversation = { entries: RawMessage[]; removals: Removals; end: number }

/** Bytes, and messages, of one step: about a millisecond. */
const stepBytes = 1024 * 1024
const stepMessages = 500

/**
 * Reads the messages of the array (or the one object or text) that begins at `at`; each `memory` member is
 * to be removed.
 *
 * @throws Refusal `invalid` for a `memory` that is neither boolean nor null: the client may have
 *   meant a private message.
 */
export function* readConversation(
  body: Buffer,
  at: number,
  format: RequestFormat,
): Steps<RawConversation> {
  if (kindAt(body, at) !== 'array') return readSingleMessage(body, at, format)
  const removals: Removals = []
  let entries: RawMessage[] = []
  let stepEnd = at + stepBytes
  let element = firstElement(body, at)
  for (let index = 0; !isArrayEnd(body, element); index++) {
    if (kindAt(body, element) === 'object') {
      const entry = emptyMessage(element, format)
      element = nextElement(body, readMessage(body, entry, index, format, removals))
      entries.push(entry)
      if (entries.length >= 2 * messagesMax) entries = entries.slice(-messagesMax)
    } else element = nextElement(body, valueEnd(body, element))
    if (element < stepEnd && index % stepMessages !== stepMessages - 1) continue
    stepEnd = element + stepBytes
    yield
  }
  return { entries: entries.slice(-messagesMax), removals, end: element + 1 }
}

/** A conversation that is no array: one message, or the text of one, where the format has them. */
function readSingleMessage(body: Buffer, at: number, format: RequestFormat): RawConversation {
  const kind = kindAt(body, at)
  const removals: Removals = []
  const entry = emptyMessage(at, format)
  if (kind === 'object' && format.singleMessageAllowed) {
    const end = readMessage(body, entry, 0, format, removals)
    return { entries: [entry], removals, end }
  }
  const isText = kind === 'string' && format.textAllowed
  const entries = isText ? [{ ...entry, role: 'user', content: at }] : []
  return { entries, removals, end: valueEnd(body, at) }
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
  let type: string | undefined
  const readField = (start: number, nameEnd: number, value: number): number => {
    const name = matchMessageField(body, start, nameEnd)
    const end = valueEnd(body, value)
    if (name === format.contentField) entry.content = value
    else if (name === 'role') entry.role = readShortString(body, value, end, roleBytesMax)
    else if (name === 'type') type = readShortString(body, value, end, typeBytesMax)
    else if (name === 'name') entry.name = readSpeakerName(body, value, end)
    return end
  }
  const end = forEachRetainedMember(body, entry.start, removals, isSwitch, readField)
  if (entry.role === undefined && format.roleOfItem) {
    entry.role = format.roleOfItem(type)
    // The content of reasoning is no part of the reply.
    entry.content = undefined
  }
  return end
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

/**
 * The user's messages after the last model turn. A model turn at the end is a prefilled beginning of the
 * reply and does not count. System messages and messages of programs alone may come anywhere.
 *
 * @returns none when the last message is not the user's.
 */
export function findNewUserMessages(
  body: Buffer,
  entries: readonly RawMessage[],
  format: RequestFormat,
  { isStoredMessage }: MessageReader,
): RawMessage[] {
  const { modelRole } = format
  let end = entries.length
  while (end > 0 && entries[end - 1]!.role === modelRole) end--
  const begin = entries.findLastIndex(({ role }, index) => index < end && role === modelRole) + 1
  const users: RawMessage[] = []
  let isLastUsers = true
  for (const entry of entries.slice(begin, end)) {
    if (systemRoles.has(entry.role)) continue
    if (isStoredMessage(entry)) users.push(entry)
    else if (format.isUserMessage(body, entry)) continue
    isLastUsers = users.at(-1) === entry
  }
  return isLastUsers ? users : []
}

/** What is stored of a message of the user; undefined when nothing is. */
export function toStoredMessage(entry: RawMessage, reader: MessageReader): Message | undefined {
  const { memory, name } = entry
  const content = memory === false ? '' : reader.stored(entry)
  if (content.trim() === '') return undefined
  return { role: 'user', content, ...(name !== undefined && { name }) }
}

/** Roles whose messages are no part of a conversation. */
export const systemRoles = new Set<string | undefined>(['system', 'developer'])
