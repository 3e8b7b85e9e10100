import { Refusal } from '#shared/core/errors.ts'
import type { LineError } from '#shared/domain/file-types.ts'

/** Lines of a file; of `failed` lines the first are in `errors`. */
type FileOutcome = {
  lines: number
  failed: number
  /** Memories. */
  stored: number
  skipped: number
  /** Pieces of the earlier version of a document, which are gone. */
  replaced?: number
  /** Pictures of a document of which a model has said nothing. */
  picturesLeftOut?: number
  errors?: LineError[]
  /** The operation was cancelled after these lines. */
  cancelled?: true
}

/** Memories. */
type CopyCounts = {
  /** Truncated keys. */
  sourceKey: string
  destinationKey: string
  copied: number
  skipped: number
  failed: number
  /** Tokens of the copied memories. */
  tokens: number
  /** Epoch milliseconds. */
  requestedAt: number
  errors?: string[]
}

export type FailureReason = 'invalid' | 'conflict' | 'upstream' | 'unavailable' | 'unexpected'

/**
 * How an operation ended, by the kind of its work; stored as JSON. Clearing a vault removes `errors`, `queries` and
 * `session` (vault/delete/erase-texts.postgres.ts); the erasure of an account adds up `deleted`.
 */
export type OperationOutcome =
  /** An exchange or a model call; the statement that finalizes it writes it. */
  | { kind: 'ingest'; stored: number }
  | ({ kind: 'upload'; key: string; inSession: boolean; memories: number } & FileOutcome)
  | ({ kind: 'import'; replaced: number } & FileOutcome)
  | ({ kind: 'transfer' } & CopyCounts)
  | ({ kind: 'graft'; queries: string[]; threshold: number | null } & CopyCounts)
  | {
      kind: 'clear'
      deleted: number
      reset: boolean
      key: string
      /** Whether one session was cleared; its name, until that is removed. */
      inSession: boolean
      session: string | null
    }
  | { kind: 'delete-ids'; requested: number; deleted: number; failed: string[] }
  | { kind: 'expire'; expired: number }
  | {
      kind: 'reembed'
      key: string
      model: string
      dimension: number
      /** Memories. */
      embedded: number
      dropped: number
    }
  | { kind: 'retention'; days: number | null; looked: number; changed: number }
  | { kind: 'failed'; reason: FailureReason; error: string; hint: string }

export type StoredOutcome = {
  /** HTTP. */
  status: number
  value: OperationOutcome
}

const statuses: Record<FailureReason, number> = {
  invalid: 400,
  conflict: 409,
  upstream: 502,
  unavailable: 503,
  unexpected: 500,
}

const isFailureReason = (reason: string): reason is FailureReason => reason in statuses

export const failureReasonOf = (error: unknown): FailureReason =>
  error instanceof Refusal && isFailureReason(error.reason) ? error.reason : 'unexpected'

/** The outcome of an operation that was refused on its last try. */
export const failedOutcome = (refusal: Refusal): OperationOutcome => ({
  kind: 'failed',
  reason: failureReasonOf(refusal),
  error: refusal.message,
  hint: refusal.hint ?? 'The work is kept: the operator can have it tried again',
})

/** The HTTP status that the `status` column of operations holds. */
export const statusOfOutcome = (outcome: OperationOutcome): number =>
  outcome.kind === 'failed' ? statuses[outcome.reason] : 200
