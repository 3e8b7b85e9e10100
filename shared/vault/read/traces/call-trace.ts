import { hash } from 'node:crypto'
import type { LeftOutCounts } from '#shared/domain/turn/text.ts'
import type { MatchReason } from '#shared/search/ranking/signals.ts'
import type { AbstentionReason } from '#shared/vault/read/prepare/prepare.ts'
import type { RecalledLine } from '#shared/vault/read/prepare/choose-lines.ts'

/** How memory was read: by a model call, by one of the endpoints, or by a tool of MCP. */
export type CallWay = 'proxy' | 'prepare' | 'search' | 'mcp'

/** What a call recalled. Holds no text. */
export type RecallTrace = {
  /** The embedding model of the space that was searched. */
  embeddings: string
  status: 'ok' | 'none' | 'off' | 'degraded' | 'aside'
  /** The vault's, when the call was authenticated. */
  revision: number
  /** Epoch milliseconds; set where the call asked for what was known then. */
  asOf?: number
  confidence?: number
  abstained?: AbstentionReason | null
  /** In the order of the prompt; that of the call's own turn is the last one. */
  blocks: TracedBlock[]
  /** Memories that were returned; undefined: those of the blocks. */
  memories?: number
  /** Tokens of the blocks, or of the memories that were returned. Undefined in traces of 1.0, as `leftOutMemories`. */
  tokens?: number
  /** Memories that were found for the call and not given. */
  leftOutMemories?: number
}

/** The changes of a model call's request on the way to the provider. */
type SentCallTrace = {
  /** The API format of the call. */
  format: 'openai' | 'responses' | 'anthropic' | 'google'
  /** Provider-prefixed. */
  model: string
  splices: {
    what: 'block' | 'model' | 'cache_control'
    at: number
    bytes: number
  }[]
  /** Start and end of what was taken out of the client's body, in turn. */
  removed: number[]
  leftOut: LeftOutCounts
  receivedBytes: number
  sentBytes: number
  /** SHA-256 of the bytes that were sent, in hex. */
  sentSha256: string
}

/** The trace of any call. */
export type CallTrace = RecallTrace & Partial<SentCallTrace>

/** What is known when a call has ended; durations in milliseconds. Undefined: not known, or there was none. */
export type CallOutcome = {
  recall?: number | undefined
  /** From the request to the provider to the last byte of its answer. */
  provider?: number | undefined
  total?: number | undefined
  /** Tokens, as the provider told them. */
  input?: number | undefined
  /** Those of them from the provider's cache. */
  cached?: number | undefined
  output?: number | undefined
  /** The status of the answer: the provider's, or that of our own refusal. */
  status?: number | undefined
  /** What a status from 400 on came with, in one line; `from` is missing where we have refused. */
  error?: { from?: string; words: string } | undefined
}

/** One context block of a request. */
export type TracedBlock = {
  /** Index of its turn among the answered turns before the last one; null: the turn of the call. */
  turn: number | null
  /** How many parts of the message precede it. */
  place: number
  /** Epoch milliseconds: the ages of its lines are counted from it. */
  at: number
  /** In the order of its lines. */
  ids: string[]
  /** Those that are not whole or are marked. */
  lines: RecalledLine[]
  /** For each line 8 hex digits of its digest. */
  marks: string
  /** The digests are of the texts of the memories: rendering the lines of a search costs more than its whole trace. */
  isByText?: true
  /** For each line what it was ranked by; empty for the block of an earlier call. */
  ranking: { relevance: number; why: (MatchReason | 'reply')[] }[]
}

const markLength = 8

/** The mark of a line of a block: another text, time or speaker of the memory gives another one. */
export const markOf = (line: string): string => hash('sha256', line, 'hex').slice(0, markLength)

/** The marks of the lines of a block, in one text. */
export const marksOf = (lines: readonly string[]): string => lines.map(markOf).join('')

/** The mark of the line at an index. */
export const markAt = ({ marks }: Pick<TracedBlock, 'marks'>, index: number): string =>
  marks.slice(index * markLength, (index + 1) * markLength)
