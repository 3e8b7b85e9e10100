import type { Message } from '#shared/domain/message-content.ts'

/** The request and answer formats that are spoken as they are, never translated into each other. */
export type ApiFormat = 'openai' | 'anthropic' | 'google'

/** What a request's body itself says about its memory (`MemorySwitches` of the contract). */
export type BodySwitches = {
  memory?: boolean
  memory_mode?: 'on' | 'off' | 'read' | 'write'
  memory_store?: boolean
  memory_store_response?: boolean
  session_id?: string
  embeddings?: string
}

/** A model request as memory sees it, beside the bytes it came in. */
export type ProxyRequest = {
  /** As the body names it; undefined for google, whose model is in the path, and where it is no string. */
  model: string | undefined
  stream: boolean
  switches: BodySwitches
  /** The conversation in order, system turns and `memory: false` included: what recall asks about. */
  turns: Message[]
  /**
   * The user's turns after the last model turn: what this exchange adds and is to be stored. Empty when
   * the last turn is a tool's result, when all are `memory: false`, or when nothing is readable.
   */
  newMessages: Message[]
  /** Where a block belongs: it can be put nowhere without one. */
  userTurn: UserTurn | undefined
  /**
   * The bytes for the provider: without switches and the `memory` of messages, with the model renamed
   * and the block in its place when they are given. Every other byte is the client's own, in its order,
   * spacing, escapes, number spelling and duplicate keys. Any number of calls answer independently.
   *
   * @param change.place of the block in an earlier call of the same turn, whatever place it would get now
   */
  serialize(change: { model?: string; context?: string; place?: number }): Buffer
}

/** The last turn in which the user says something; results of tools, and what the model says, may follow. */
export type UserTurn = {
  /** A hash of the conversation up to and including this turn: 32 bytes, the same in all calls for it. */
  readonly fingerprint: Buffer
  /** The model has been at work on it: this call brings the results of tools. */
  readonly isToolContinuation: boolean
  /** How many parts of it stand before the block. */
  readonly blockIndex: number
}

/** What a model answered, as memory keeps it. */
export type Reply = {
  /** What was said: no thinking, no tool calls; of several choices the first. */
  text: string
  /** More came than was read: the text ends early. */
  truncated: boolean
  /** The answer came to its proper end. */
  complete: boolean
  inputTokens?: number
  outputTokens?: number
  /** The provider answered with an error, at once or in the middle of its stream. */
  failed: boolean
}

/** Hears a provider's answer beside its way to the client, in bounded memory; it never throws. */
export type ReplyParser = {
  /** The next bytes, split anywhere. They are read before this returns, and not kept or changed. */
  feed(bytes: Uint8Array): void
  /** What was said so far. Call once, when no more bytes come. */
  end(): Reply
}

/** What one family's format means to memory. */
export type Dialect = {
  apiFormat: ApiFormat
  /**
   * Reads a request. Odd fields are no errors: what memory cannot read it skips, and the provider
   * judges.
   *
   * @throws Refusal `invalid` for broken JSON, a body that is no object, more than 64 levels, and for
   *   switches of a wrong type.
   */
  parseRequest(body: Buffer): ProxyRequest
  /** @param answer the provider's status and its `content-type`, empty when it sent none. */
  createReplyParser(answer: { status: number; contentType: string }): ReplyParser
}
