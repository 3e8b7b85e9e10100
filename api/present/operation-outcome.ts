import { presentImport, presentUpload } from '#api/present/bulk-file.ts'
import type { OperationOutcome, StoredOutcome } from '#shared/domain/operation-outcome.ts'

/** What the request would have answered, had it waited. */
export type PresentedOutcome = { body: object; status: number }

/** The answer of a finished operation. Outcomes of former releases are answers already. */
export function presentOperationOutcome(
  operation: string,
  { status, value }: StoredOutcome,
): PresentedOutcome {
  if (value.kind === undefined) return { body: value, status }
  const id = value.kind === 'failed' ? {} : { operation_id: operation }
  return { body: sortLikeJsonb({ ...presentOutcome(value), ...id }), status }
}

function presentOutcome(outcome: OperationOutcome): object {
  switch (outcome.kind) {
    case 'upload':
      return presentUpload(outcome)
    case 'import':
      return presentImport(outcome, { dryRun: false })
    case 'transfer':
    case 'graft':
      return presentCopy(outcome)
    case 'clear':
      return presentClearing(outcome)
    case 'delete-ids':
      return presentDeletion(outcome)
    case 'expire':
      return presentExpiration(outcome)
    case 'reembed':
      return presentReembedding(outcome)
    case 'retention':
      return presentRetention(outcome)
    case 'failed':
      return { error: outcome.error, hint: outcome.hint }
  }
}

type Outcome<Kind extends OperationOutcome['kind']> = Extract<OperationOutcome, { kind: Kind }>

function presentCopy(outcome: Outcome<'transfer' | 'graft'>) {
  const { kind, sourceKey, destinationKey, copied, skipped, failed, tokens, errors } = outcome
  return {
    dry_run: false,
    operation: kind,
    source_key: sourceKey,
    destination_key: destinationKey,
    ...(kind === 'graft' && { queries: outcome.queries, threshold: outcome.threshold }),
    copied,
    deduped_or_skipped: skipped,
    failed,
    estimated_tokens: tokens,
    provenance: {
      origin_key: sourceKey,
      transferred_at: new Date(outcome.requestedAt).toISOString(),
    },
    ...(errors && { errors }),
  }
}

const presentClearing = (outcome: Outcome<'clear'>) => ({
  key: outcome.key,
  session_id: outcome.session,
  deleted: outcome.deleted,
  reset: outcome.reset,
  message: describeClearing(outcome),
})

function describeClearing({ deleted, inSession, reset }: Outcome<'clear'>): string {
  const memories = deleted === 1 ? '1 memory' : `${deleted} memories`
  if (inSession) return `Deleted ${memories} of this session`
  return reset
    ? `Deleted ${memories}; the vault is as new, for any embedding model`
    : `Deleted ${memories}`
}

const presentDeletion = ({ requested, deleted, failed }: Outcome<'delete-ids'>) => ({
  requested,
  deleted,
  do_deleted: deleted,
  not_found: requested - deleted - failed.length,
  legacy_fallback_used: false,
  failed,
})

const presentExpiration = ({ expired }: Outcome<'expire'>) => ({
  expired,
  message: expired === 1 ? '1 memory was over' : `${expired} memories were over`,
})

const presentReembedding = ({ key, model, dimension, embedded, dropped }: Outcome<'reembed'>) => ({
  key,
  embeddings: model,
  dimension,
  embedded,
  dropped,
  message: `${embedded} memories have been embedded with ${model}`,
})

const presentRetention = ({ days, looked, changed }: Outcome<'retention'>) => ({
  retention_days: days,
  memories: looked,
  changed,
  message: `${changed} of ${looked} memories have another end`,
})

/**
 * Orders fields as Postgres' `jsonb` does, by the length of their names, then by the names: answers of
 * former releases were stored as `jsonb` and keep that order.
 */
const sortLikeJsonb = (answer: object): object =>
  Object.fromEntries(
    Object.entries(answer)
      .map(([name, value]): [string, unknown] => [
        name,
        isObject(value) ? sortLikeJsonb(value) : value,
      ])
      .sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1)),
  )

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
