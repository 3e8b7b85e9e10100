import { readContentInSteps, readContentParts } from '#api/proxy/dialects/content.ts'
import type { RawMessage, RequestFormat } from '#api/proxy/dialects/format.ts'
import {
  longContentBytesMin,
  readLongContent,
  type LongContentReading,
} from '#api/proxy/dialects/long-content.ts'
import { valueEnd } from '#api/proxy/json/walk.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import { textParts, type Message } from '#shared/domain/message-content.ts'
import {
  readMessageContent,
  sentMessageContent,
  type ContentReading,
} from '#shared/domain/turn/conversation.ts'

/** Reads what messages of a body say, each once. */
export type MessageReader = {
  /**
   * Reads long messages beforehand, in a thread. Without it, or when the thread fails, they are read at their
   * first use.
   */
  readLong(entries: readonly RawMessage[]): Promise<void>
  /**
   * The message with its texts in place of the provider's parts, which are decoded at their first use. Of one that
   * was read by `readLong` the content is the beginning and the end of its words.
   */
  message(entry: RawMessage): Message
  /** The texts of its parts; of one that was read by `readLong` their beginnings. */
  texts(entry: RawMessage): string[]
  /** Decodes its content beforehand: a long text in steps. */
  decode(entry: RawMessage): Steps<void>
  /** What the message says, and what of it known programs have written. */
  read(entry: RawMessage): ContentReading
  /** From now on messages are stored as they were sent. Call it before anything is read. */
  storeVerbatim(): void
  /** What is stored of the message. */
  stored(entry: RawMessage): string
  /** Drops all texts: they are decoded again when they are asked for. */
  forget(): void
  /** Whether the message is the user's: it has content of the user, and not only marks of programs. */
  isUserMessage(entry: RawMessage): boolean
  /** Whether the message is stored as the user's. */
  isStoredMessage(entry: RawMessage): boolean
}

export function createMessageReader(body: Buffer, format: RequestFormat): MessageReader {
  const messages = new Map<RawMessage, Message>()
  const decoded = new Map<RawMessage, Message['content']>()
  const readings = new Map<RawMessage, ContentReading>()
  const long = new Map<RawMessage, LongContentReading>()
  let isVerbatim = false
  const message = (entry: RawMessage): Message => {
    const known = messages.get(entry)
    if (known) return known
    const reading = long.get(entry)
    if (reading) decoded.set(entry, abridge(reading.words))
    const read = toMessage(body, entry, decoded)
    messages.set(entry, read)
    return read
  }
  const read = (entry: RawMessage): ContentReading => {
    const known = long.get(entry) ?? readings.get(entry)
    if (known) return known
    const { role, content } = message(entry)
    const reading = readMessageContent(role, content)
    readings.set(entry, reading)
    return reading
  }
  const isUserMessage = (entry: RawMessage): boolean => {
    if (!format.isUserMessage(body, entry)) return false
    const { words, leftOut } = read(entry)
    return leftOut.length === 0 || words.trim() !== ''
  }
  return {
    async readLong(entries) {
      for (const entry of longEntries(body, entries, format)) {
        const json = body.subarray(entry.content, valueEnd(body, entry.content))
        const reading = await readLongContent(entry.role, json, isVerbatim).catch(() => undefined)
        if (reading) long.set(entry, reading)
      }
    },
    message,
    texts: entry => long.get(entry)?.beginnings ?? textParts(message(entry).content),
    *decode(entry) {
      if (entry.content === undefined || decoded.has(entry) || long.has(entry)) return
      decoded.set(entry, yield* readContentInSteps(body, entry.content))
    },
    read,
    storeVerbatim() {
      isVerbatim = true
    },
    stored: entry =>
      isVerbatim
        ? (long.get(entry)?.sent ?? sentMessageContent(message(entry).content))
        : read(entry).words,
    forget() {
      decoded.clear()
      readings.clear()
      long.clear()
      messages.clear()
    },
    isUserMessage,
    isStoredMessage: entry =>
      isVerbatim ? format.isUserMessage(body, entry) : isUserMessage(entry),
  }
}

type LongEntry = RawMessage & { role: string; content: number }

/** Messages of the user and of the model whose content is long. */
const longEntries = (
  body: Buffer,
  entries: readonly RawMessage[],
  { modelRole }: RequestFormat,
): LongEntry[] =>
  entries.filter((entry, index): entry is LongEntry => {
    const { role, content } = entry
    if (content === undefined || (role !== 'user' && role !== modelRole)) return false
    // Up to the next message it is no longer; only where that is far its end is looked for.
    const next = entries[index + 1]?.start ?? body.length
    if (next - content < longContentBytesMin) return false
    return valueEnd(body, content) - content >= longContentBytesMin
  })

/** Characters of a long message, from either end, that are recalled for and compared with memories. */
const abridgedCharacters = 256 * 1024

const abridge = (words: string): string =>
  words.length <= 2 * abridgedCharacters
    ? words
    : `${words.slice(0, abridgedCharacters)}\n${words.slice(-abridgedCharacters)}`

/** The content is decoded at its first use. */
function toMessage(
  body: Buffer,
  entry: RawMessage,
  decoded: Map<RawMessage, Message['content']>,
): Message {
  const { role, content: at, memory, name } = entry
  return {
    role: role ?? '',
    get content() {
      if (!decoded.has(entry))
        decoded.set(entry, at === undefined ? '' : readContentParts(body, at))
      return decoded.get(entry)
    },
    ...(memory !== undefined && { memory }),
    ...(name !== undefined && { name }),
  }
}
