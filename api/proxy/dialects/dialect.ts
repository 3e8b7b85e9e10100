import type { ApiFormat } from '#shared/core/provider-registry.ts'
import type { Message } from '#shared/domain/message-content.ts'
import type { Shape } from '#shared/core/shape.ts'

/** The memory switches of a request body (`MemorySwitches` of the contract). */
export type BodySwitches = {
  memory?: boolean
  memory_mode?: 'on' | 'off' | 'read' | 'write'
  memory_store?: boolean
  memory_store_response?: boolean
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
   * The user's turns after the last model turn, which this exchange stores. Empty when the last turn is
   * a tool result, when all are `memory: false`, or when none has readable content.
   */
  newMessages: Message[]
  /** The turn that gets the context block; without one there is no block. */
  userTurn: UserTurn | undefined
  /**
   * The bytes for the provider: without switches and without `memory` in messages, with the given model
   * and context block. Every other byte is the client's own: order, spacing, escapes, spelling of
   * numbers, duplicate keys. Calls are independent of each other.
   *
   * @param change.blockIndex of an earlier call of the same turn; by default `userTurn.blockIndex`
   */
  serialize(change: {
    model?: string | undefined
    context?: string | undefined
    blockIndex?: number | undefined
  }): Buffer
}

/** The last turn with content of the user; tool results and model turns may follow it. */
export type UserTurn = {
  /** SHA-256 of the conversation up to and including this turn: the same in all calls for the turn. */
  readonly fingerprint: Buffer
  /** Whether this call continues the turn with tool results. */
  readonly isToolContinuation: boolean
  /** How many parts of it precede the block. */
  readonly blockIndex: number
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
   * @throws Refusal `invalid` for broken JSON, a body that is no object, more than 64 levels, and for
   *   switches of a wrong type.
   */
  parseRequest(body: Buffer): ProxyRequest
  /** @param answer the provider's status and `content-type`, which is empty when it sent none */
  createReplyParser(answer: { status: number; contentType: string }): ReplyParser
}
