import type { Feedback } from '#shared/domain/feedback.ts'
import type { Metadata } from '#shared/domain/metadata.ts'
import type { Role } from '#shared/domain/memory.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'

export type BulkFileKind = 'upload' | 'import'

export type LineError = { line: number; error: string }

/** A checked line of an upload. */
export type UploadedLine = {
  content: string
  role: Role
  /** Epoch milliseconds; absent when the line names no time. */
  timestamp?: number
  expires_at?: string
  metadata?: Metadata
  /** A picture of a document, in place of a text. */
  picture?: { digest: string; mediaType: string }
}

/** A checked line of an export: a memory with all its fields. */
export type ExportedLine = UploadedLine & {
  id: string
  tier: 1 | 2 | 3
  timestamp: number
  session_id: string | null
  name?: string
  importance?: number
  piece?: { message: string; number: number }
  /** The document that it is a piece of. */
  file_id?: string
  covers?: { from: string; to: string }
  batch_id?: string
  sources?: string[]
  consolidated?: boolean
  feedback?: Feedback
  consolidated_by?: string[]
  origin_key?: string
  origin_id?: string
  transferred_at?: string
  vector?: { model: string; values: number[]; space?: string }
}

export type NumberedLine<Line> = Line & {
  line: number
  /** An earlier line of the file has the same text. */
  again?: boolean
}

export type StagedLine = NumberedLine<UploadedLine> | NumberedLine<ExportedLine>

/** The plan for one memory of a chunk, stored with the chunk before the memory is written. */
export type PlannedMemory = {
  id: string
  as: 'new' | 'replace' | 'skip'
  /** The id to use when `id` belongs to another vault. */
  next?: string
  /** The session and the share of the debt of a replaced memory. */
  was?: { session: string | null; debt: DebtChange }
}

/** Results counted in memories; `lines` and `failed` count lines. */
export type BulkTally = {
  lines: number
  failed: number
  memories: number
  stored: number
  replaced: number
  skipped: number
}

export const reportedErrorsMax = 20
