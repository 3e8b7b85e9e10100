import type { Caller } from '#shared/access/caller.ts'
import type { Turn } from '#shared/domain/message-content.ts'
import type { Metadata } from '#shared/domain/metadata.ts'

/** An exchange of a user and a model, under way or finished. */
export type Exchange = {
  /** The UUIDv7 it is accepted under. */
  operation: string
  owner: ExchangeOwner
  session: string | null
  /** Provider-prefixed; usage metadata only. */
  model: string | null
  /** The embedding model it is stored with. */
  embeddings: string
  /** When its memories expire, in epoch milliseconds. */
  expiresAt?: number | undefined
  /** False: it is kept from the member's organization; true, when missing. */
  shares?: boolean | undefined
  /** Fields of every memory of it. */
  metadata?: Metadata | undefined
}

/** Owner of an exchange; a `Caller` is one. */
export type ExchangeOwner = Pick<Caller, 'account' | 'keyHash'> & {
  scope: Pick<Caller['scope'], 'vault'>
  /** Left out where it is unknown whether the key is a member's. */
  memberScope?: Caller['memberScope']
  /** Redaction and retention; left out where they are unknown. */
  keyRow?: Pick<Caller['keyRow'], 'redaction' | 'retentionDays'>
}

/** A model call whose user turns are stored and whose answer is still to come. */
export type OpenExchange = Exchange & {
  model: string
  /** The user's turns; empty when an earlier call for the same turn has stored them. */
  userTurns: readonly Turn[]
  /** The beginning of the user's turns where an earlier call has stored them. */
  repeated?: string
  /** False where the answer is stored only with its input, and nothing of that is. */
  storesReply?: boolean
  /** The answer is stored as it came, with its marks of thoughts and calls of tools. */
  verbatim?: boolean
  /** The call brings results of tools: the text of earlier steps is no answer. */
  isContinuation?: boolean
  /** 32-byte hash of the user's turn: sent again before its answer has ended, it is stored once. */
  turn?: Buffer | undefined
}

/** How a model call ended. */
export type ExchangeResult = {
  /** The text of the answer to store; null when there is none. */
  text: string | null
  /** The answer ended early. */
  interrupted: boolean
  /** No answer came: the client will send the turn again. */
  unanswered: boolean
  /** The model calls tools: its text is stored only if the turn never ends. */
  isStep?: boolean
  /** As counted by the provider; 0 where it reports none. */
  inputTokens: number
  /** Those of them that a cache of the provider held. */
  cachedTokens?: number
  outputTokens: number
  /** Tokens of the memories recalled for the call, billed with it as one request. */
  recalledTokens: number
  /** Tags of the shared memories in the prompt. */
  inheritedTags?: readonly string[]
}
