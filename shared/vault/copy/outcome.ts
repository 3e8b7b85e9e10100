import type { Copy, CopyTally } from '#shared/vault/copy/copies.postgres.ts'
import type { OperationResult } from '#shared/operations/operation-rows.postgres.ts'

/**
 * What a copy answers when all of it is settled. Some chunks may have failed: they are in `errors` and
 * the copy may be asked for again. When nothing at all came of it the first failure is the answer.
 */
export function copyOutcome(copy: Copy & { askedAt: Date }, tally: CopyTally): OperationResult {
  const { copied, skipped, failed, tokens, errors, status } = tally
  if (failed > 0 && copied + skipped === 0) {
    return {
      status: status ?? 500,
      body: { error: errors[0] ?? 'The copy failed', hint: 'Nothing was copied; try again' },
    }
  }
  return {
    status: 200,
    body: {
      dry_run: false,
      operation: copy.queries === null ? 'transfer' : 'graft',
      source_key: copy.sourceKey,
      destination_key: copy.destinationKey,
      ...(copy.queries !== null && { queries: copy.queries, threshold: copy.threshold }),
      copied,
      deduped_or_skipped: skipped,
      failed,
      estimated_tokens: tokens,
      provenance: { origin_key: copy.sourceKey, transferred_at: copy.askedAt.toISOString() },
      ...(errors.length > 0 && { errors }),
      operation_id: copy.operation,
    },
  }
}
