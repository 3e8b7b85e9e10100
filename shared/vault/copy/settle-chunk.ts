import { Refusal } from '#shared/core/errors.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { failureReasonOf, type OperationOutcome } from '#shared/domain/operation-outcome.ts'
import {
  findStep,
  type OperationStep,
  type StepError,
  type StepTally,
} from '#shared/operations/operation-steps.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { settleStep } from '#shared/vault/base/long-operation.ts'
import { findEpoch } from '#shared/vault/base/vaults.postgres.ts'

export type CopyRequest = {
  source: string
  /** When its memories were chosen. */
  sourceEpoch: number
  /** Truncated, as `destinationKey`. */
  sourceKey: string
  /** Hash of the destination key, in hex. */
  destinationHash: string
  destinationKey: string
  /** The embedding model whose vault space is copied. */
  model: string
  /** Null for a transfer. */
  queries: string[] | null
  threshold: number | null
}

/** Memories that one job copies, oldest first. */
export type CopyInput = {
  /** Position of its first memory in the whole copy: new ids keep the order. */
  first: number
  ids: string[]
}

/** Its vault and epoch are those of the destination. */
export type CopyChunk = OperationStep<CopyRequest, CopyInput, null>

/**
 * Settles a chunk with its result, and what it changed in the destination. Memories that are neither copied nor
 * failed were skipped. The caller has locked source and destination.
 *
 * @throws Refusal `conflict` when something was stored and the destination has been cleared.
 */
export async function settleChunk(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  chunk: CopyChunk,
  { stored = [], removed = [] }: { stored?: readonly string[]; removed?: readonly string[] },
  result: {
    copied?: number
    failed?: number
    /** Tokens of the copied memories. */
    tokens?: number
    errors?: readonly StepError[]
  },
): Promise<void> {
  const { copied = 0, failed = 0, tokens = 0, errors = [] } = result
  if (stored.length > 0) assertEpoch(chunk, await findEpoch(tx.query, chunk))
  const skipped = chunk.ids.length - copied - failed
  await settleStep(tx, queue, chunk, {
    counts: { copied, skipped, failed, tokens },
    errors,
    changes: stored.length + removed.length > 0 ? [{ session: null, stored, removed }] : [],
    debt: { rawUnits: copied, rawTokens: tokens },
    progress: ({ settled }) => settled,
    summarize: summarizeCopy,
  })
}

/** @throws Refusal `conflict` when the destination is in another epoch than at acceptance. */
export function assertEpoch(chunk: CopyChunk, epoch: number | undefined): void {
  if (epoch === chunk.epoch) return
  throw new Refusal('conflict', 'The destination was cleared meanwhile')
}

/** Settles a chunk as failed: the others continue, and the outcome of the copy names its error. */
export async function failChunk(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { operation, n }: StepJob,
  error: unknown,
): Promise<void> {
  const chunk = await findStep<CopyChunk>(postgres.query, operation, n)
  if (!chunk) return
  const { first, ids, source, vault } = chunk
  const message = error instanceof Refusal ? error.message : 'An unexpected failure'
  const errors = [
    {
      error: `Memories ${first + 1} to ${first + ids.length}: ${message}`,
      reason: failureReasonOf(error),
    },
  ]
  await postgres.transaction(async tx => {
    await lockVaults(tx, [source, vault])
    await settleChunk(tx, queue, chunk, {}, { failed: ids.length, errors })
  })
}

/** A copy of which every memory failed has failed with the first error. */
function summarizeCopy(
  { counts, errors }: StepTally,
  { sourceKey, destinationKey, queries, threshold, createdAt }: CopyChunk,
): OperationOutcome {
  const { copied = 0, skipped = 0, failed = 0, tokens = 0 } = counts
  if (failed > 0 && copied + skipped === 0) {
    const { error = 'The copy failed', reason = 'unexpected' } = errors[0] ?? {}
    return { kind: 'failed', reason, error, hint: 'Nothing was copied; try again' }
  }
  const shared = {
    sourceKey,
    destinationKey,
    copied,
    skipped,
    failed,
    tokens,
    requestedAt: createdAt.getTime(),
    ...(errors.length > 0 && { errors: errors.map(({ error }) => error) }),
  }
  return queries === null
    ? { kind: 'transfer', ...shared }
    : { kind: 'graft', queries, threshold, ...shared }
}
