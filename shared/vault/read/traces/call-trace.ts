import { hash } from 'node:crypto'
import type { LeftOutCounts } from '#shared/domain/turn/text.ts'
import type { MatchReason } from '#shared/search/ranking/signals.ts'
import type { AbstentionReason } from '#shared/vault/read/prepare/prepare.ts'
import type { RecalledLine } from '#shared/vault/read/prepare/choose-lines.ts'

/** The memories in a model call, and the changes of its request on the way to the provider. Holds no text. */
export type CallTrace = {
  /** The API format of the call. */
  format: 'openai' | 'responses' | 'anthropic' | 'google'
  /** Provider-prefixed. */
  model: string
  /** The `model` that was put into the body in place of the client's; undefined where that stayed. */
  renamed?: string
  /** The embedding model of the space that was searched. */
  embeddings: string
  status: 'ok' | 'none' | 'off' | 'degraded' | 'aside'
  /** Of the vault, when the call was authenticated. */
  revision: number
  /** Epoch milliseconds; set where the call asked for what was known then. */
  asOf?: number
  confidence?: number
  abstained?: AbstentionReason | null
  /** In the order of the prompt; that of the call's own turn is the last one. */
  blocks: TracedBlock[]
  splices: Splice[]
  /** Start and end of what was taken out of the client's body, in turn. */
  removed: number[]
  leftOut: LeftOutCounts
  /** SHA-256 of the conversation up to the user's last turn, its first 16 bytes in hex. */
  conversation: string
  receivedBytes: number
  sentBytes: number
  /** SHA-256 of the bytes that were sent, in hex. */
  sentSha256: string
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
  /** For each line what it was ranked by; empty for the block of an earlier call. */
  ranking: { relevance: number; why: MatchReason[] }[]
}

/** What was put into the body, by its place in the bytes that were sent. */
type Splice = {
  what: 'block' | 'model' | 'cache_control'
  at: number
  bytes: number
}

const markLength = 8

/** Of a line of a block: another text, time or speaker of the memory gives another one. */
export const markOf = (line: string): string => hash('sha256', line, 'hex').slice(0, markLength)

/** The marks of the lines of a block, in one text. */
export const marksOf = (lines: readonly string[]): string => lines.map(markOf).join('')

/** The mark of the line at an index. */
export const markAt = ({ marks }: Pick<TracedBlock, 'marks'>, index: number): string =>
  marks.slice(index * markLength, (index + 1) * markLength)
