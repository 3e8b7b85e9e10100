import { findBlockIndex, isBlockLast } from '#api/proxy/dialects/block.ts'
import { Fingerprints } from '#api/proxy/dialects/fingerprint.ts'
import type { RequestMessage, RequestSource } from '#api/proxy/dialects/messages.ts'
import { kindAt } from '#shared/core/json-walk.ts'
import type { Message } from '#shared/domain/message-content.ts'
import type { LeftOutPiece } from '#shared/domain/turn/text.ts'

/** Where the messages after the last one of the model begin, of those before `end`. */
export const afterModel = (messages: readonly RequestMessage[], end = messages.length): number =>
  messages.findLastIndex(({ isModels }, index) => index < end && isModels) + 1

/**
 * What is stored of the user's messages after the last model turn. A model turn at the end is a prefilled beginning
 * of the reply and does not count. System messages and messages of programs alone may come anywhere.
 *
 * @returns none when the last message is not the user's.
 */
export function newUserMessages(messages: readonly RequestMessage[]): Message[] {
  const end = messages.findLastIndex(({ isModels }) => !isModels) + 1
  const users: RequestMessage[] = []
  let isLastUsers = true
  for (const message of messages.slice(afterModel(messages, end), end)) {
    if (message.isSystem) continue
    if (message.isStored) users.push(message)
    else if (message.isSentByUser) continue
    isLastUsers = users.at(-1) === message
  }
  return isLastUsers ? storedOf(users) : []
}

const storedOf = (messages: readonly RequestMessage[]): Message[] =>
  messages.flatMap(({ stored }) => stored ?? [])

/** A turn of the user by its last message. */
abstract class Turn {
  readonly message: RequestMessage
  protected readonly conversation: Conversation

  constructor(conversation: Conversation, message: RequestMessage) {
    this.conversation = conversation
    this.message = message
  }

  /** SHA-256 of the conversation up to and including this turn: the same in all calls for the turn. */
  get fingerprint(): Buffer {
    return this.conversation.fingerprints.of(this.message)
  }
}

/** The last turn with content of the user; tool results and model turns may follow it. */
export class UserTurn extends Turn {
  /** Whether this call continues the turn with tool results. */
  get isToolContinuation(): boolean {
    return this.conversation.following.some(({ continuesTurn }) => continuesTurn)
  }

  /** How many parts of it precede the block. */
  get blockIndex(): number {
    const { source, hasCacheControl } = this.conversation
    return findBlockIndex(source, this.message, hasCacheControl && !this.isToolContinuation)
  }

  /** What the user says in the turn, as it is stored: in its first call and in those with tool results alike. */
  get messages(): readonly Message[] {
    return storedOf(this.#entries)
  }

  /** As `messages`; nothing where part of the turn is `memory: false`. */
  get storable(): readonly Message[] {
    return this.#entries.some(({ memory }) => memory === false) ? [] : this.messages
  }

  /** The messages of the turn that are the user's to store, private ones among them. */
  get #entries(): RequestMessage[] {
    return this.conversation.sinceModel.filter(({ isStored }) => isStored)
  }

  /** The turns before it that got no final reply, oldest first: this call ends them. */
  get unansweredBefore(): readonly {
    fingerprint: Buffer
    /** How many of `newMessages` repeat it and what precedes it. */
    messages: number
  }[] {
    const { sinceModel, fingerprints, unanswered } = this.conversation
    let at = 0
    let messages = 0
    return unanswered.map(message => {
      for (const end = sinceModel.indexOf(message, at) + 1; at < end; at++)
        if (sinceModel[at]!.isStored && sinceModel[at]!.stored) messages++
      return { fingerprint: fingerprints.of(message), messages }
    })
  }
}

/** A message of so many bytes is read again at full price when its block vanishes from before it. */
const longMessageBytes = 8 * 1024

/** A turn of the user before the last one. */
export class EarlierTurn extends Turn {
  /** Whether its block is sent again: tool steps follow it, or its message is long. */
  readonly isKept: boolean

  constructor(conversation: Conversation, message: RequestMessage, isKept: boolean) {
    super(conversation, message)
    this.isKept = isKept
  }

  /** Whether a block after so many parts stood behind all that the client sent in that request. */
  isBlockLast(blockIndex: number): boolean {
    return isBlockLast(this.conversation.source, this.message, blockIndex)
  }
}

/** Most turns that are looked at: the first ones, so that their blocks never move. */
const turnsMax = 500

/** The turns of the user in a conversation. */
export class Conversation {
  readonly source: RequestSource
  /** The messages up to and including the user's last one, and those after it. */
  readonly messages: readonly RequestMessage[]
  readonly following: readonly RequestMessage[]
  /** Whether a `cache_control` of the body applies to the last message. */
  readonly hasCacheControl: boolean
  readonly fingerprints: Fingerprints
  /** The last turn; undefined where the user says nothing. */
  readonly turn: UserTurn | undefined
  #earlier: EarlierTurn[] | undefined

  /** @param options.continued raw bytes of what names the conversation that the provider keeps */
  constructor(
    source: RequestSource,
    messages: readonly RequestMessage[],
    { continued, hasCacheControl }: { continued: readonly Buffer[]; hasCacheControl: boolean },
  ) {
    const last = messages.findLastIndex(({ isUsers }) => isUsers)
    this.source = source
    this.messages = messages.slice(0, last + 1)
    this.following = messages.slice(last + 1)
    this.hasCacheControl = hasCacheControl
    this.turn = last < 0 ? undefined : new UserTurn(this, messages[last]!)
    let asked: ReadonlySet<RequestMessage> | undefined
    this.fingerprints = new Fingerprints(
      { ...source, messages: this.messages, continued },
      message => (asked ??= this.#findAsked()).has(message),
    )
  }

  /** The messages since the last one of the model before them, up to the user's last one. */
  get sinceModel(): readonly RequestMessage[] {
    return this.messages.slice(afterModel(this.messages))
  }

  /** What known programs have written into the messages from the last turn on. */
  get leftOut(): LeftOutPiece[] {
    const messages = [...this.sinceModel, ...this.following]
    return messages.flatMap(one => (one.role === 'user' ? one.reading.leftOut : []))
  }

  /** The messages whose fingerprints calls ask for: of turns with a block, and of those that end with this call. */
  #findAsked(): Set<RequestMessage> {
    const turns = this.earlier.filter(
      ({ isKept }, index, { length }) => isKept || index === length - 1,
    )
    const messages = turns.map(({ message }) => message)
    return new Set([...messages, ...this.unanswered, ...this.messages.slice(-1)])
  }

  /**
   * The turns of the user before the last one which the model has answered, the first ones first: of several messages
   * in a row, the last. Each had the context block while it was the last turn.
   */
  get earlier(): readonly EarlierTurn[] {
    return (this.#earlier ??= this.#findEarlier())
  }

  #findEarlier(): EarlierTurn[] {
    const users = this.messages.flatMap(({ isUsers }, index) => (isUsers ? [index] : []))
    const turns = users.slice(0, -1).flatMap((at, position) => {
      const answer = this.messages.slice(at + 1, users[position + 1])
      if (!answer.some(({ isModels }) => isModels)) return []
      const message = this.messages[at]!
      const hasToolSteps = answer.some(({ continuesTurn }) => continuesTurn)
      const isLong = message.contentBytes > longMessageBytes
      return new EarlierTurn(this, message, hasToolSteps || isLong)
    })
    // The block of the last one vanishes with this request, if it is not among those.
    const last = turns.slice(turnsMax).slice(-1)
    return [
      ...turns.slice(0, turnsMax),
      ...last.map(({ message }) => new EarlierTurn(this, message, false)),
    ]
  }

  /**
   * The user's messages of the last turn but its last one, and the turn before it when its tools were still at work:
   * the message before this turn is no reply, or the user writes in the message with the results.
   */
  get unanswered(): readonly RequestMessage[] {
    const messages = this.sinceModel.filter(({ isUsers }) => isUsers)
    const [first] = messages
    if (!first) return []
    const before = this.messages.slice(0, this.messages.indexOf(first))
    const previous = before.findLast(({ isSystem }) => !isSystem)
    const isUnended = previous !== undefined && (!previous.isModels || first.hasToolResult)
    const unended = isUnended ? before.findLast(({ isUsers }) => isUsers) : undefined
    return [...(unended ? [unended] : []), ...messages.slice(0, -1)]
  }
}

/**
 * Where the request before this one ended: at the last answer of the model, or at the user's message when
 * there is none.
 */
export function endOfPreviousRequest(body: Buffer, messages: readonly RequestMessage[]): number {
  let at = messages.findLastIndex(({ isModels }) => isModels)
  if (at < 0) return messages.at(-1)?.start ?? 0
  while (messages[at - 1]?.isModels) at--
  const before = messages[at - 1]
  if (!before) return messages[at]!.start
  // Behind the last part that request may have had its block, or the end of its list.
  const { contentAt, end } = before
  const isList = contentAt !== undefined && kindAt(body, contentAt) === 'array'
  return isList ? (before.parts.at(-1)?.end ?? contentAt + 1) : end
}
