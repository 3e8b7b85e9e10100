import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { Copy, CopyTally } from '#shared/vault/copy/copies.postgres.ts'

/**
 * The outcome of a copy whose chunks are all settled. `errors` are those of chunks that failed; a copy
 * of which every memory failed has failed with the first error.
 */
export function copyOutcome(
  { sourceKey, destinationKey, queries, threshold, askedAt }: Copy & { askedAt: Date },
  { copied, skipped, failed, tokens, errors, reason }: CopyTally,
): OperationOutcome {
  if (failed > 0 && copied + skipped === 0) {
    const error = errors[0] ?? 'The copy failed'
    const hint = 'Nothing was copied; try again'
    return { kind: 'failed', reason: reason ?? 'unexpected', error, hint }
  }
  const counts = {
    sourceKey,
    destinationKey,
    copied,
    skipped,
    failed,
    tokens,
    requestedAt: askedAt.getTime(),
    ...(errors.length > 0 && { errors }),
  }
  return queries === null
    ? { kind: 'transfer', ...counts }
    : { kind: 'graft', queries, threshold, ...counts }
}
