import { createHash, type Hash } from 'node:crypto'
import { isTextPart } from '#api/proxy/dialects/content.ts'
import type { RequestMessage, RequestSource } from '#api/proxy/dialects/messages.ts'
import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import {
  createNameMatcher,
  forEachElement,
  forEachMember,
  kindAt,
  valueEnd,
} from '#shared/core/json-walk.ts'

/** A conversation to take fingerprints of. */
type FingerprintSource = RequestSource & {
  messages: readonly RequestMessage[]
  /** Raw bytes of what names the conversation that the provider keeps. */
  continued: readonly Buffer[]
}

/** Bytes of one step: about a millisecond. */
const stepBytes = 512 * 1024

/** Fingerprints of the user's messages of a conversation: one pass takes those that calls ask for. */
export class Fingerprints {
  readonly #source: FingerprintSource
  readonly #taken = new Map<RequestMessage, Buffer>()
  readonly #pass: Steps<void>

  /** @param isAsked whether a call needs the fingerprint of this message of the user */
  constructor(source: FingerprintSource, isAsked: (message: RequestMessage) => boolean) {
    this.#source = source
    this.#pass = this.#take(isAsked)
  }

  /**
   * SHA-256 of the conversation up to and including a message of the user: of the user's words without marks of
   * programs, and of the raw bytes of everything else. It stays the same from call to call although clients move
   * `cache_control`, write a text that has one as a list of parts, add and renew reminders, and send a streamed
   * reply back in as many model turns as it had pieces. System messages are left out: they often hold the time.
   */
  of(message: RequestMessage): Buffer {
    if (!this.#taken.has(message)) runAtOnce(this.#pass)
    // No call asks for another one; it is as good.
    if (!this.#taken.has(message)) runAtOnce(this.#take(() => true))
    return this.#taken.get(message)!
  }

  /** Takes those that a call asks for: `of` then costs nothing. */
  takeAsked(): Steps<void> {
    return this.#pass
  }

  *#take(isAsked: (message: RequestMessage) => boolean): Steps<void> {
    const { body, messages, continued } = this.#source
    const hash = createHash('sha256')
    for (const id of continued) hash.update('\0').update(id)
    let previousRole: string | undefined
    let stepEnd = stepBytes
    for (const message of messages) {
      const { role, isModels, isSystem, start } = message
      if (!isSystem && !hasNothingElse(body, message)) {
        if (!isModels || previousRole !== role) hash.update(`\n${role} `)
        previousRole = role
        yield* hashMessage(hash, body, message)
      }
      if (message.isUsers && isAsked(message)) this.#taken.set(message, hash.copy().digest())
      if (start < stepEnd) continue
      stepEnd = start + stepBytes
      yield
    }
  }
}

/** Whether a user's message holds marks of programs and nothing else: no words, media or tool results. */
const hasNothingElse = (body: Buffer, message: RequestMessage): boolean =>
  message.role === 'user' &&
  message.isMarksAlone &&
  message.parts.every(part => isTextPart(body, part))

function* hashMessage(hash: Hash, body: Buffer, message: RequestMessage): Steps<void> {
  const { role, contentAt: content, isModels } = message
  if (content === undefined) return
  const texts = role === 'user' ? 'words' : isModels ? 'joined' : 'apart'
  // A text and a list of one text part are the same.
  if (texts === 'words') yield* hashWords(hash.update(','), message.reading.words)
  const add = (part: number): number => hashPart(hash, body, part, texts)
  if (kindAt(body, content) === 'array') forEachElement(body, content, add)
  else add(content)
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
const textTypes = ['"text"', '"input_text"', '"output_text"'].map(type => Buffer.from(type))

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
    if (field === 'text' && kindAt(body, value) === 'string')
      return hashText(hash, body, value, texts)
    const end = valueEnd(body, value)
    const isTextType =
      field === 'type' && textTypes.some(type => type.equals(body.subarray(value, end)))
    if (field !== 'cache_control' && !isTextType)
      hash.update(body.subarray(name, nameEnd)).update(body.subarray(value, end))
    return end
  })
}

/** @returns the end of the string. */
function hashText(hash: Hash, body: Buffer, at: number, texts: TextHashing): number {
  const end = valueEnd(body, at)
  if (texts !== 'words') hash.update(body.subarray(at + 1, end - 1))
  return end
}
