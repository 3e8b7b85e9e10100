import type { ApiFormat } from '#shared/core/provider-registry.ts'
import type { Message } from '#shared/domain/message-content.ts'
import type { LeftOutPiece } from '#shared/domain/turn/text.ts'
import type { Shape } from '#shared/core/shape.ts'

/** The memory switches of a request body (`MemorySwitches` of the contract). */
export type BodySwitches = {
  memory?: boolean
  memory_mode?: 'on' | 'off' | 'read' | 'write'
  memory_store?: boolean
  memory_store_response?: boolean
  memory_verbatim?: boolean
  memory_share?: boolean
  memory_user?: string
  context_limit?: number
  density?: 'low' | 'default' | 'high' | 'xhigh'
  session_id?: string
  embeddings?: string
}

/** A parsed model request; its bytes are kept and forwarded. */
export type ProxyRequest = {
  /** The body's `model`; undefined where it is no string, and for google, whose model is in the path. */
  model: string | undefined
  stream: boolean
  switches: BodySwitches
  /** The members that `Dialect.bodyShape` constrains, lists without their elements: what it checks. */
  typedFields: Record<string, unknown>
  /** The conversation in order, with system turns and `memory: false`: the query of the recall. */
  turns: Message[]
  /**
   * The user's turns after the last model turn, which this exchange stores: without the marks of known programs,
   * unless `storeVerbatim` was called. Empty when the last turn is a tool result, when all are `memory: false`, or
   * when none has readable content.
   */
  newMessages: Message[]
  /**
   * A program makes the call for itself: a title, tags, a summary, a test of the quota. `inside` a conversation,
   * whose prompt it goes on from, or `apart` from it with a prompt of its own.
   */
  aside: 'inside' | 'apart' | undefined
  /** Whether the request has no message of the model. */
  isFirst: boolean
  /** What known programs have written into the user's messages of this turn. */
  leftOut: readonly LeftOutPiece[]
  /** What of that message is not left out; empty without one. */
  words: string
  /** The turn that gets the context block; without one there is no block. */
  userTurn: UserTurn | undefined
  /** The turns of the user before that one which the model has answered, the first ones first. */
  earlierTurns: readonly EarlierTurn[]
  /** From now on the user's messages are stored as they were sent. Call it before anything is read. */
  storeVerbatim(): void
  /**
   * Reads the conversation in slices of the event loop; without it the getters above read a large one at once.
   */
  readAhead(): Promise<void>
  /** Drops the texts of the conversation; the bytes stay, and the texts can be read again. */
  forgetTexts(): void
  /**
   * The bytes for the provider: without switches and without `memory` in messages, with the given model
   * and context blocks. Every other byte is the client's own: order, spacing, escapes, spelling of
   * numbers, duplicate keys. Calls are independent of each other.
   *
   * @param change.blockIndex of an earlier call of the same turn; by default `userTurn.blockIndex`
   */
  serialize(change: RequestChange): Buffer
  /** What the same change puts into those bytes, and what is taken out of the client's. */
  splicesOf(change: RequestChange): RequestSplices
  /**
   * How many of those bytes, from the first, the request before this one had as well, when it was of the
   * same conversation: all before the last answer of the model.
   *
   * @param lost the turn whose block is no longer as it was: bytes from it on are others
   */
  reusableBytes(change: RequestChange, lost: EarlierTurn | UserTurn | undefined): number
}

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

/** A turn of the user before the last one. */
export type EarlierTurn = {
  /** As that of `UserTurn` when it was the last turn. */
  readonly fingerprint: Buffer
  /** Whether its block is sent again: tool steps follow it, or its message is long. */
  readonly isKept: boolean
  /** Whether a block after so many parts stood behind all that the client sent in that request. */
  isBlockLast(blockIndex: number): boolean
}

/** The last turn with content of the user; tool results and model turns may follow it. */
export type UserTurn = {
  /** SHA-256 of the conversation up to and including this turn: the same in all calls for the turn. */
  readonly fingerprint: Buffer
  /** Whether this call continues the turn with tool results. */
  readonly isToolContinuation: boolean
  /** How many parts of it precede the block. */
  readonly blockIndex: number
  /** What the user says in the turn, as it is stored: in its first call and in those with tool results alike. */
  readonly messages: readonly Message[]
  /** As `messages`; nothing where part of the turn is `memory: false`. */
  readonly storable: readonly Message[]
  /** The turns before it that got no final reply, oldest first: this call ends them. */
  readonly unansweredBefore: readonly UnansweredTurn[]
}

/** A turn of the user that another one follows without a final reply between them. */
export type UnansweredTurn = {
  fingerprint: Buffer
  /** How many of `newMessages` repeat it and what precedes it. */
  messages: number
}

/** A model's reply, as memory stores it. */
export type Reply = {
  /** Without thinking and tool calls; of several choices the first. */
  text: string
  /** A limit was reached: part of the text is missing. */
  truncated: boolean
  /** The provider marked the end of the response. */
  complete: boolean
  inputTokens?: number
  outputTokens?: number
  /** The provider returned an error, at once or in the middle of its stream. */
  failed: boolean
  /** It calls tools of the client: the text is no final reply, and the turn goes on. */
  isStep?: boolean
}

/** Parses a provider's response while it is relayed, in bounded memory; never throws. */
export type ReplyParser = {
  /** Takes the next bytes, split anywhere. They are not changed, and not referenced after the return. */
  feed(bytes: Uint8Array): void
  /** Returns the reply so far. Call once, after the last bytes. */
  end(): Reply
}

/** Reads requests and responses of one API format. */
export type Dialect = {
  apiFormat: ApiFormat
  /** What the contract requires of a body. */
  bodyShape: Shape<unknown>
  /**
   * Reads a request. Members that memory cannot read are skipped: the provider validates them.
   *
   * @throws Refusal `invalid` for broken JSON, a body that is no object, more than 10,000 levels, and for
   *   switches of a wrong type.
   */
  parseRequest(body: Buffer): ProxyRequest
  /** As `parseRequest`, in slices of the event loop. */
  parseInSlices(body: Buffer): Promise<ProxyRequest>
  /** @param answer the provider's status and `content-type`, which is empty when it sent none */
  createReplyParser(answer: { status: number; contentType: string }): ReplyParser
}
