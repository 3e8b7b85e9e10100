import { insertBlock, type ContextBlock } from '#api/proxy/dialects/block.ts'
import { systemTurns } from '#api/proxy/dialects/content.ts'
import {
  readMaxTokens,
  readMembers,
  type BodySwitches,
  type ByteSpan,
  type MemberNames,
  type RequestMembers,
} from '#api/proxy/dialects/members.ts'
import type { RequestMessage, RequestSource } from '#api/proxy/dialects/messages.ts'
import type { RequestFormat } from '#api/proxy/dialects/request-format.ts'
import {
  afterModel,
  Conversation,
  endOfPreviousRequest,
  newUserMessages,
  type EarlierTurn,
  type UserTurn,
} from '#api/proxy/dialects/turns.ts'
import { Splices, type Insertion } from '#api/proxy/json/splice.ts'
import { validateSteps } from '#shared/core/json-validate.ts'
import { runInSlices, type Steps } from '#shared/core/event-loop.ts'
import { kindAt, parseValue } from '#shared/core/json-walk.ts'
import { notJsonObject } from '#shared/core/refusals.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { type Message, textParts } from '#shared/domain/message-content.ts'
import { hasAsidePrompt, isAsideCall } from '#shared/domain/turn/asides.ts'
import type { LeftOutPiece } from '#shared/domain/turn/text.ts'

/** What is changed in a request before it is forwarded. */
export type RequestChange = {
  model?: string | undefined
  context?: string | undefined
  blockIndex?: number | undefined
  /** The blocks of earlier turns, which keep their places. */
  earlier?: readonly { turn: EarlierTurn; context: string; blockIndex: number }[]
}

/** What a request became on its way to the provider. */
export type RequestSplices = {
  /** In the order of the bytes that are sent, by their place in them. */
  inserted: { what: 'block' | 'model' | 'cache_control'; at: number; bytes: number }[]
  /** Start and end in the client's body, in turn. */
  removed: number[]
  receivedBytes: number
}

type NamedInsertion = Insertion & Pick<RequestSplices['inserted'][number], 'what'>

/** Reads a request: see `Dialect.parseRequest`. */
export function* parseSteps(
  body: Buffer,
  format: RequestFormat,
  names: MemberNames,
): Steps<ProxyRequest> {
  const start = yield* validateSteps(body)
  if (kindAt(body, start) !== 'object') throw notJsonObject()
  const source: RequestSource = { body, format, isVerbatim: false }
  return new ProxyRequest(source, yield* readMembers(source, start, names))
}

const systemNames = new Set(['system', 'systemInstruction', 'system_instruction', 'instructions'])
const conversationNames = new Set(['previous_response_id', 'conversation'])

/**
 * A parsed model request; its bytes are kept and forwarded. Its texts are decoded at their first use. Order of the calls:
 * `storeVerbatim` before any text is read, `readAhead` for a large body, then getters and `serialize`, `forgetTexts` last.
 */
export class ProxyRequest {
  /** The body's `model`; undefined where it is no string, and for google, whose model is in the path. */
  readonly model: string | undefined
  readonly switches: BodySwitches
  /** The members that `Dialect.bodyShape` constrains, lists without their elements: what it checks. */
  readonly typedFields: Record<string, unknown>
  /** Whether the request has no message of the model. */
  readonly isFirst: boolean
  readonly #source: RequestSource
  readonly #members: RequestMembers
  /** An object, since `undefined` is an answer. */
  #aside: { kind: 'inside' | 'apart' | undefined } | undefined
  #readConversation: Conversation | undefined
  #lastSplices: { change: RequestChange; splices: Splices<NamedInsertion> } | undefined

  constructor(source: RequestSource, members: RequestMembers) {
    const { switches, typedFields, messages } = members
    this.#source = source
    this.#members = members
    this.switches = switches
    this.typedFields = typedFields
    const model = this.#modelSpan
    this.model = model && sanitizeText(parseValue(source.body, model.at, model.end) as string)
    this.isFirst = !messages.some(({ isModels }) => isModels)
  }

  /** The conversation in order, with system turns and `memory: false`: the query of the recall. */
  get turns(): Message[] {
    return [
      ...systemTurns(this.#source.body, this.#systemAt),
      ...this.#members.messages.map(message => message.toMessage()),
    ]
  }

  /**
   * The user's turns after the last model turn, which this exchange stores: without the marks of known programs,
   * unless `storeVerbatim` was called. Empty when the last turn is a tool result, when all are `memory: false`, or
   * when none has readable content.
   */
  get newMessages(): Message[] {
    return newUserMessages(this.#members.messages)
  }

  /**
   * A program makes the call for itself: a title, tags, a summary, a test of the quota. `inside` a conversation,
   * whose prompt it goes on from, or `apart` from it with a prompt of its own.
   */
  get aside(): 'inside' | 'apart' | undefined {
    return (this.#aside ??= { kind: this.#findAside() }).kind
  }

  /** What known programs have written into the user's messages of this turn. */
  get leftOut(): readonly LeftOutPiece[] {
    return this.#conversation.leftOut
  }

  /** Whether known programs have written all that is stored of the user's messages. */
  get isMarksAlone(): boolean {
    const { messages } = this.#members
    const stored = messages.slice(afterModel(messages)).filter(({ isStored }) => isStored)
    return stored.length > 0 && stored.every(({ isMarksAlone }) => isMarksAlone)
  }

  /** What of the user's last message is not left out; empty without one. */
  get words(): string {
    return this.userTurn?.message.reading.words ?? ''
  }

  /** The turn that gets the context block; without one there is no block. */
  get userTurn(): UserTurn | undefined {
    return this.#conversation.turn
  }

  /** The turns of the user before that one which the model has answered, the first ones first. */
  get earlierTurns(): readonly EarlierTurn[] {
    return this.#conversation.earlier
  }

  /** From now on the user's messages are stored as they were sent. Call it before anything is read. */
  storeVerbatim(): void {
    this.#source.isVerbatim = true
  }

  /** Reads the conversation in slices of the event loop; without it the getters above read a large one at once. */
  async readAhead(): Promise<void> {
    const { messages } = this.#members
    for (const message of messages) await message.readLong()
    await runInSlices(readUsers(messages))
    await runInSlices(this.#conversation.fingerprints.takeAsked())
  }

  /** Drops the texts of the conversation; the bytes stay, and the texts can be read again. */
  forgetTexts(): void {
    for (const message of this.#members.messages) message.forget()
  }

  /**
   * The bytes for the provider: without switches and without `memory` in messages, with the given model
   * and context blocks. Every other byte is the client's own: order, spacing, escapes, spelling of
   * numbers, duplicate keys. Calls are independent of each other.
   *
   * @param change.blockIndex of an earlier call of the same turn; by default `userTurn.blockIndex`
   */
  serialize(change: RequestChange): Buffer {
    return this.#splices(change).apply(this.#source.body)
  }

  /** What the same change puts into those bytes, and what is taken out of the client's. */
  splicesOf(change: RequestChange): RequestSplices {
    return {
      inserted: this.#splices(change)
        .insertedSpans()
        .map(({ insertion: { what }, at, bytes }) => ({ what, at, bytes })),
      removed: this.#members.removals,
      receivedBytes: this.#source.body.length,
    }
  }

  /**
   * How many of those bytes, from the first, the request before this one had as well, when it was of the
   * same conversation: all before the last answer of the model.
   *
   * @param lost the turn whose block is no longer as it was: bytes from it on are others
   */
  reusableBytes(change: RequestChange, lost: EarlierTurn | UserTurn | undefined): number {
    const at = lost
      ? lost.message.start
      : endOfPreviousRequest(this.#source.body, this.#members.messages)
    return this.#splices(change).movedOffset(at)
  }

  /** A `model` that is a text, in formats that have it in the body. */
  get #modelSpan(): ByteSpan | undefined {
    const { body, format } = this.#source
    const model = format.hasModelInBody ? this.#members.spans.get('model') : undefined
    return model && kindAt(body, model.at) === 'string' ? model : undefined
  }

  /** Offset of the system prompt that is no message. */
  get #systemAt(): number | undefined {
    const last = [...this.#members.spans].findLast(([name]) => systemNames.has(name))
    return last?.[1].at
  }

  /** The `cache_control` of the body, where it applies to the last part of the last message. */
  get #cacheControl(): ByteSpan | undefined {
    const { body, format } = this.#source
    const span = this.#members.spans.get('cache_control')
    if (format.cacheControl !== 'parts and body' || !span) return undefined
    return kindAt(body, span.at) === 'object' ? span : undefined
  }

  get #conversation(): Conversation {
    const { messages } = this.#members
    return (this.#readConversation ??= new Conversation(this.#source, messages, {
      continued: this.#continued,
      hasCacheControl: this.#cacheControl !== undefined,
    }))
  }

  /** The bytes of what names the conversation that the provider keeps and this request continues. */
  get #continued(): Buffer[] {
    const { body } = this.#source
    return [...this.#members.spans].flatMap(([name, { at, end }]) =>
      conversationNames.has(name) && kindAt(body, at) !== 'other' ? [body.subarray(at, end)] : [],
    )
  }

  /** Whether a program makes the call for itself, by the prompts of the request. */
  #findAside(): ProxyRequest['aside'] {
    const { body } = this.#source
    const { messages } = this.#members
    const begin = afterModel(messages)
    const systemTexts = [
      ...systemTurns(body, this.#systemAt).flatMap(({ content }) => textParts(content)),
      ...messages.slice(0, 2).flatMap(one => (one.isSystem ? one.texts : [])),
    ]
    const isAside = isAsideCall({
      maxTokens: readMaxTokens(body, this.#members),
      systemTexts,
      userTexts: messages.slice(begin).flatMap(one => (one.role === 'user' ? one.texts : [])),
    })
    if (!isAside) return undefined
    return begin === 0 || hasAsidePrompt('system', systemTexts) ? 'apart' : 'inside'
  }

  /** A call asks for the same change three times. */
  #splices(change: RequestChange): Splices<NamedInsertion> {
    if (this.#lastSplices?.change !== change)
      this.#lastSplices = { change, splices: this.#spliceFor(change) }
    return this.#lastSplices.splices
  }

  #spliceFor({ model, context, blockIndex, earlier = [] }: RequestChange): Splices<NamedInsertion> {
    const { body } = this.#source
    const insertions: NamedInsertion[] = []
    const insert = (what: NamedInsertion['what'], texts: Insertion[]): void => {
      for (const text of texts) insertions.push({ what, ...text })
    }
    const insertInto = ({ message }: EarlierTurn | UserTurn, block: ContextBlock): void =>
      insert('block', insertBlock(this.#source, message, block))
    for (const { turn, ...block } of earlier) insertInto(turn, block)
    if (model !== undefined && this.#modelSpan)
      insert('model', [{ ...this.#modelSpan, text: JSON.stringify(model) }])
    const turn = context === undefined ? undefined : this.userTurn
    if (context !== undefined && turn) {
      // After a tool continuation the block keeps its place, so the `cache_control` need not move.
      const moved = turn.isToolContinuation ? undefined : this.#cacheControl
      if (moved) insert('cache_control', [{ ...moved, text: 'null' }])
      const cacheControl = moved && body.toString('utf8', moved.at, moved.end)
      insertInto(turn, { context, blockIndex: blockIndex ?? turn.blockIndex, cacheControl })
    }
    return new Splices(this.#members.removals, insertions)
  }
}

/** Bytes of one step: about a millisecond. */
const stepBytes = 512 * 1024

/** Reads which messages are the user's, in steps. */
function* readUsers(messages: readonly RequestMessage[]): Steps<void> {
  let stepEnd = stepBytes
  for (const message of messages) {
    void message.isUsers
    if (message.end < stepEnd) continue
    stepEnd = message.end + stepBytes
    yield
  }
}
