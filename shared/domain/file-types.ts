import type { Role } from '#shared/domain/memory.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'

/** What a file of lines is for. */
export type BulkFileKind = 'upload' | 'import'

export type LineError = { line: number; error: string }

/** A line of an upload, checked. */
export type UploadedLine = {
  content: string
  role: Role
  /** Epoch milliseconds; absent where the line tells none. */
  timestamp?: number
  /** When it is to be over. */
  expires_at?: string
}

/** A line of an export, checked: a memory with everything that makes it one. */
export type ExportedLine = UploadedLine & {
  id: string
  tier: 1 | 2 | 3
  timestamp: number
  session_id: string | null
  name?: string
  importance?: number
  covers?: { from: string; to: string }
  batch_id?: string
  sources?: string[]
  consolidated?: boolean
  consolidated_by?: string[]
  origin_key?: string
  origin_id?: string
  transferred_at?: string
  vector?: { model: string; values: number[] }
}

/** A checked line where it stands in its file. */
export type NumberedLine<Line> = Line & {
  line: number
  /** An earlier line of the file says the same. */
  again?: boolean
}

export type StagedLine = NumberedLine<UploadedLine> | NumberedLine<ExportedLine>

/** What becomes of one memory of a chunk. Settled before it is written, and kept with the chunk. */
export type PlannedMemory = {
  id: string
  as: 'new' | 'replace' | 'skip'
  /** The id to take should `id` turn out to be another vault's. */
  next?: string
  /** Of a replaced memory: where it was and what it added to the debt. */
  was?: { session: string | null; debt: DebtChange }
}

/** What became of lines, in memories; `lines` and `failed` are lines. */
export type BulkTally = {
  lines: number
  failed: number
  memories: number
  stored: number
  replaced: number
  skipped: number
}

/** The answer names at most this many faulty lines. */
export const reportedErrorsMax = 20
