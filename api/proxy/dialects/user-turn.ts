import { systemRoles, toStoredMessage } from '#api/proxy/dialects/conversation.ts'
import type { UnansweredTurn, UserTurn } from '#api/proxy/dialects/dialect.ts'
import type { Fingerprints } from '#api/proxy/dialects/fingerprint.ts'
import type { MessageReader } from '#api/proxy/dialects/message-reader.ts'
import type { RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'
import type { LeftOutPiece } from '#shared/domain/turn/text.ts'

type TurnContext = {
  reader: MessageReader
  fingerprints: Fingerprints
  /** The messages after the user's last one. */
  following: readonly RawMessage[]
  /** Whether a `cache_control` of the body applies to the last message. */
  hasCacheControl: boolean
}

/** A conversation up to and including the user's last message. */
export type TurnSource = Pick<TurnContext, 'reader' | 'fingerprints'> & {
  body: Buffer
  entries: readonly RawMessage[]
}

/** @param entries the conversation up to and including the user's last message */
export function createUserTurn(
  body: Buffer,
  entries: readonly RawMessage[],
  format: RequestFormat,
  { reader, fingerprints, following, hasCacheControl }: TurnContext,
): UserTurn {
  const last = entries.at(-1)!
  const source = { body, entries, reader, fingerprints }
  return {
    get fingerprint() {
      return fingerprints.of(last)
    },
    get isToolContinuation() {
      return following.some(entry => isToolContinuation(body, entry, format))
    },
    get blockIndex() {
      return format.findBlockIndex(body, last, hasCacheControl && !this.isToolContinuation)
    },
    get messages() {
      return entriesOfTurn(source, format).flatMap(entry => toStoredMessage(entry, reader) ?? [])
    },
    get storable() {
      const isPrivate = entriesOfTurn(source, format).some(({ memory }) => memory === false)
      return isPrivate ? [] : this.messages
    },
    get unansweredBefore() {
      return findUnansweredTurns(source, format)
    },
  }
}

/** The user's messages since the last one of the model; the last entry is one of them. */
function messagesOfTurn(
  { entries, reader }: TurnSource,
  { modelRole }: RequestFormat,
): RawMessage[] {
  const begin = entries.findLastIndex(({ role }) => role === modelRole) + 1
  return entries.slice(begin).filter(reader.isUserMessage)
}

/** The messages of the turn that are the user's to store, private ones among them. */
function entriesOfTurn(
  { entries, reader }: TurnSource,
  { modelRole }: RequestFormat,
): RawMessage[] {
  const begin = entries.findLastIndex(({ role }) => role === modelRole) + 1
  return entries.slice(begin).filter(reader.isStoredMessage)
}

/**
 * The user's messages of this turn but the last, and the turn before it when its tools were still at work:
 * the message before this turn is no reply, or the user writes in the message with the results.
 */
function findUnansweredTurns(source: TurnSource, format: RequestFormat): UnansweredTurn[] {
  const { body, entries, reader, fingerprints } = source
  const { modelRole } = format
  const messages = messagesOfTurn(source, format)
  const before = entries.slice(0, entries.indexOf(messages[0]!))
  const previous = before.findLast(({ role }) => !systemRoles.has(role))
  const isUnended =
    previous !== undefined &&
    (previous.role !== modelRole || (format.hasToolResult?.(body, messages[0]!) ?? false))
  const unended = isUnended ? before.findLast(reader.isUserMessage) : undefined
  const ends = [...(unended ? [unended] : []), ...messages.slice(0, -1)]
  let at = entries.findLastIndex(({ role }) => role === modelRole) + 1
  let stored = 0
  return ends.map(entry => {
    const end = entry === unended ? 0 : entries.indexOf(entry, at) + 1
    for (; at < end; at++) {
      const isStored = reader.isStoredMessage(entries[at]!)
      if (isStored && toStoredMessage(entries[at]!, reader)) stored++
    }
    return { fingerprint: fingerprints.of(entry), messages: stored }
  })
}

/** What known programs have written into the messages from the user's last turn on. */
export function readLeftOut(
  entries: readonly RawMessage[],
  { modelRole }: RequestFormat,
  { isUserMessage, read }: MessageReader,
): LeftOutPiece[] {
  const last = entries.findLastIndex(isUserMessage)
  const begin = entries.findLastIndex(({ role }, index) => index < last && role === modelRole) + 1
  return entries.slice(begin).flatMap(entry => (entry.role === 'user' ? read(entry).leftOut : []))
}

/**
 * Whether a message after the user's turn shows that the model has worked on it: a tool result does. A
 * model message is a prefilled beginning of the reply, unless the format has paused replies.
 */
export function isToolContinuation(
  body: Buffer,
  entry: RawMessage,
  { modelRole, isPausedReply }: RequestFormat,
): boolean {
  if (entry.role === modelRole) return isPausedReply?.(body, entry) ?? false
  return !systemRoles.has(entry.role)
}
