import { createHash, type Hash } from 'node:crypto'
import { systemRoles } from '#api/proxy/dialects/conversation.ts'
import type { MessageReader } from '#api/proxy/dialects/message-reader.ts'
import type { RawMessage } from '#api/proxy/dialects/format.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import {
  createNameMatcher,
  forEachElement,
  forEachMember,
  kindAt,
  valueEnd,
} from '#api/proxy/json/walk.ts'

/** A conversation to take fingerprints of. */
export type FingerprintSource = {
  body: Buffer
  entries: readonly RawMessage[]
  reader: MessageReader
  modelRole: string
  /** Raw bytes of what names the conversation that the provider keeps. */
  continued: readonly Buffer[]
}

/** Fingerprints of the user's messages of a conversation. */
export type Fingerprints = {
  /**
   * SHA-256 of the conversation up to and including a message of the user: of the user's words without marks of programs, and
   * of the raw bytes of everything else. It stays the same from call to call although clients move
   * `cache_control`, write a text that has one as a list of parts, add and renew reminders, and send a streamed
   * reply back in as many model turns as it had pieces. System messages are left out: they often hold the time.
   */
  of(message: RawMessage): Buffer
  /** Takes all of them: `of` then costs nothing. */
  takeAll(): Steps<void>
}

/** Bytes of one step: about a millisecond. */
const stepBytes = 512 * 1024

/** One pass takes the fingerprints of all messages of the user. */
export function createFingerprints(source: FingerprintSource): Fingerprints {
  const fingerprints = new Map<RawMessage, Buffer>()
  const pass = hashMessages(source, fingerprints)
  return {
    of(message) {
      let isTaken = fingerprints.has(message)
      while (!isTaken) isTaken = pass.next().done === true || fingerprints.has(message)
      return fingerprints.get(message)!
    },
    takeAll: () => pass,
  }
}

function* hashMessages(
  { body, entries, reader, modelRole, continued }: FingerprintSource,
  fingerprints: Map<RawMessage, Buffer>,
): Steps<void> {
  const hash = createHash('sha256')
  for (const id of continued) hash.update('\0').update(id)
  let previousRole: string | undefined
  let stepEnd = stepBytes
  for (const entry of entries) {
    const { role } = entry
    if (role === 'user') yield* reader.decode(entry)
    if (!systemRoles.has(role) && !isMarksAlone(body, entry, reader)) {
      if (role !== modelRole || previousRole !== role) hash.update(`\n${role} `)
      previousRole = role
      yield* hashMessage(hash, body, entry, { reader, modelRole })
    }
    if (reader.isUserMessage(entry)) fingerprints.set(entry, hash.copy().digest())
    if (entry.start < stepEnd) continue
    stepEnd = entry.start + stepBytes
    yield
  }
}

/** Whether a user's message holds marks of programs and nothing else: no words, media or tool results. */
function isMarksAlone(body: Buffer, entry: RawMessage, { read }: MessageReader): boolean {
  if (entry.role !== 'user' || entry.content === undefined) return false
  const { words, leftOut } = read(entry)
  return leftOut.length > 0 && words.trim() === '' && !hasOtherPart(body, entry.content)
}

function hasOtherPart(body: Buffer, content: number): boolean {
  if (kindAt(body, content) === 'string') return false
  if (kindAt(body, content) !== 'array') return !isTextPart(body, content)
  let found = false
  forEachElement(body, content, element => {
    found ||= !isTextPart(body, element)
    return valueEnd(body, element)
  })
  return found
}

function isTextPart(body: Buffer, at: number): boolean {
  if (kindAt(body, at) !== 'object') return kindAt(body, at) === 'string'
  let isText = false
  forEachMember(body, at, (name, nameEnd, value) => {
    isText ||= matchField(body, name, nameEnd) === 'text' && kindAt(body, value) === 'string'
    return valueEnd(body, value)
  })
  return isText
}

function* hashMessage(
  hash: Hash,
  body: Buffer,
  entry: RawMessage,
  { reader, modelRole }: Pick<FingerprintSource, 'reader' | 'modelRole'>,
): Steps<void> {
  const { role, content } = entry
  if (content === undefined) return
  const texts = role === 'user' ? 'words' : role === modelRole ? 'joined' : 'apart'
  // A text and a list of one text part are the same.
  if (texts === 'words') yield* hashWords(hash.update(','), reader.read(entry).words)
  if (kindAt(body, content) === 'array') {
    forEachElement(body, content, element => hashPart(hash, body, element, texts))
  } else hashPart(hash, body, content, texts)
}

/** The hash of the text in UTF-8, in steps. */
function* hashWords(hash: Hash, text: string): Steps<void> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + stepBytes, text.length)
    // Halves of a surrogate pair would be hashed as two unknown characters.
    if (to < text.length && (text.charCodeAt(to) & 0xfc00) === 0xdc00) to--
    hash.update(text.slice(from, to))
    from = to
    if (from < text.length) yield
  }
}

/** How the texts of a message enter the hash: not at all (its words have), in one piece, or each by itself. */
type TextHashing = 'words' | 'joined' | 'apart'

const matchField = createNameMatcher(['type', 'cache_control', 'text'])
const textTypeValues = ['"text"', '"input_text"', '"output_text"'].map(type => Buffer.from(type))

/** @returns the part's end. */
function hashPart(hash: Hash, body: Buffer, at: number, texts: TextHashing): number {
  const kind = kindAt(body, at)
  if (texts === 'apart') hash.update(',')
  if (kind === 'string') return hashText(hash, body, at, texts)
  if (kind !== 'object') {
    const end = valueEnd(body, at)
    hash.update(body.subarray(at, end))
    return end
  }
  return forEachMember(body, at, (name, nameEnd, value) => {
    const field = matchField(body, name, nameEnd)
    if (field === 'text' && kindAt(body, value) === 'string') {
      return hashText(hash, body, value, texts)
    }
    const end = valueEnd(body, value)
    const isTextType =
      field === 'type' && textTypeValues.some(type => type.equals(body.subarray(value, end)))
    if (field !== 'cache_control' && !isTextType) {
      hash.update(body.subarray(name, nameEnd)).update(body.subarray(value, end))
    }
    return end
  })
}

/** @returns the end of the string. */
function hashText(hash: Hash, body: Buffer, at: number, texts: TextHashing): number {
  const end = valueEnd(body, at)
  if (texts !== 'words') hash.update(body.subarray(at + 1, end - 1))
  return end
}
