import type { OperationRow } from '#shared/operations/operation-rows.postgres.ts'
import type { OperationOutcome, StoredOutcome } from '#shared/domain/operation-outcome.ts'

/**
 * A piece of queued work as clients see it.
 *
 * @param waitingFor what does not answer, and why, where it waits for that
 */
export const presentOperation = (row: OperationRow, waitingFor?: string) => ({
  operation_id: row.id,
  kind: row.kind,
  state: row.state,
  key: row.key,
  session_id: row.session,
  progress: { done: row.done, total: row.total },
  created_at: row.createdAt.toISOString(),
  finished_at: row.finishedAt?.toISOString() ?? null,
  ...(waitingFor !== undefined && { waiting_for: waitingFor }),
  outcome: row.outcome && presentOperationOutcome(row.id, row.outcome),
})

/** The answer of a finished operation. */
export function presentOperationOutcome(
  operation: string,
  { status, value }: StoredOutcome,
): { body: object; status: number } {
  return { body: presentOutcome(value, { operation_id: operation }), status }
}

type OperationId = { operation_id: string }

/** The fields of an answer stand in the order of the contract. */
function presentOutcome(outcome: OperationOutcome, id: OperationId): object {
  switch (outcome.kind) {
    case 'ingest':
      return presentIngest(outcome, id)
    case 'upload':
      return presentUpload(outcome, id)
    case 'import':
      return presentImport(outcome, { dryRun: false, id })
    case 'transfer':
    case 'graft':
      return presentCopy(outcome, id)
    case 'clear':
      return presentClearing(outcome, id)
    case 'delete-ids':
      return presentDeletion(outcome, id)
    case 'expire':
      return presentExpiration(outcome, id)
    case 'reembed':
      return presentReembedding(outcome, id)
    case 'retention':
      return presentRetention(outcome, id)
    case 'failed':
      return { error: outcome.error, hint: outcome.hint }
  }
}

type Outcome<Kind extends OperationOutcome['kind']> = Extract<OperationOutcome, { kind: Kind }>

const presentIngest = ({ stored }: Outcome<'ingest'>, id: OperationId) => ({
  accepted: true,
  queued: false,
  ...id,
  stored,
  message: stored === 1 ? 'Stored 1 memory' : `Stored ${stored} memories`,
})

function presentCopy(outcome: Outcome<'transfer' | 'graft'>, id: OperationId) {
  const { kind, sourceKey, destinationKey, copied, skipped, failed, tokens, errors } = outcome
  return {
    operation: kind,
    dry_run: false,
    source_key: sourceKey,
    destination_key: destinationKey,
    copied,
    deduped_or_skipped: skipped,
    failed,
    estimated_tokens: tokens,
    provenance: {
      origin_key: sourceKey,
      transferred_at: new Date(outcome.requestedAt).toISOString(),
    },
    ...(errors && { errors }),
    ...id,
    ...(kind === 'graft' && { queries: outcome.queries, threshold: outcome.threshold }),
  }
}

const presentClearing = (outcome: Outcome<'clear'>, id: OperationId) => ({
  key: outcome.key,
  session_id: outcome.session,
  deleted: outcome.deleted,
  reset: outcome.reset,
  ...id,
  message: describeClearing(outcome),
})

function describeClearing({ deleted, inSession, reset }: Outcome<'clear'>): string {
  const memories = deleted === 1 ? '1 memory' : `${deleted} memories`
  if (inSession) return `Deleted ${memories} of this session`
  return reset
    ? `Deleted ${memories}; the vault is as new, for any embedding model`
    : `Deleted ${memories}`
}

const presentDeletion = (
  { requested, deleted, failed }: Outcome<'delete-ids'>,
  id: OperationId,
) => ({
  requested,
  deleted,
  do_deleted: deleted,
  not_found: requested - deleted - failed.length,
  legacy_fallback_used: false,
  failed,
  ...id,
})

const presentExpiration = ({ expired }: Outcome<'expire'>, id: OperationId) => ({
  expired,
  ...id,
  message: expired === 1 ? '1 memory was over' : `${expired} memories were over`,
})

const presentReembedding = (
  { key, model, dimension, embedded, dropped }: Outcome<'reembed'>,
  id: OperationId,
) => ({
  key,
  embeddings: model,
  dimension,
  embedded,
  dropped,
  ...id,
  message: `${embedded} memories have been embedded with ${model}`,
})

const presentRetention = ({ days, looked, changed }: Outcome<'retention'>, id: OperationId) => ({
  retention_days: days,
  memories: looked,
  changed,
  ...id,
  message: `${changed} of ${looked} memories have another end`,
})

/** The answer to an upload. */
function presentUpload(outcome: Outcome<'upload'>, id: OperationId) {
  const { key, inSession, memories, replaced, picturesLeftOut, cancelled, ...tally } = outcome
  const { lines, failed, stored, skipped, errors } = tally
  return {
    status: tallyStatus(tally),
    memoryKey: key,
    vault: inSession ? 'session' : 'core',
    stats: {
      inputItems: lines,
      memories,
      stored,
      skipped,
      failed,
      total: lines,
      processed: lines - failed,
      ...(replaced !== undefined && { replaced }),
      ...(picturesLeftOut !== undefined && { pictures_left_out: picturesLeftOut }),
    },
    ...(errors && errors.length > 0 && { errors }),
    ...id,
    message: joinParts([
      cancelled && 'cancelled',
      describeCount(stored, 'memory', 'memories', 'stored'),
      skipped > 0 && `${formatCount(skipped)} already there`,
      failed > 0 && describeCount(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

/** The answer to an import, or to its preview with `dryRun`. */
export function presentImport(
  tally: Omit<Outcome<'import'>, 'kind'>,
  { dryRun, id }: { dryRun: boolean; id?: OperationId },
) {
  const { failed, stored, replaced, skipped, errors } = tally
  return {
    dry_run: dryRun,
    status: tallyStatus(tally),
    imported: stored,
    replaced,
    skipped,
    failed,
    ...(errors && errors.length > 0 && { errors }),
    ...id,
    message: joinParts([
      tally.cancelled && 'cancelled',
      describeCount(stored, 'memory', 'memories', dryRun ? 'would be imported' : 'imported'),
      replaced > 0 && `${formatCount(replaced)} replaced`,
      skipped > 0 && `${formatCount(skipped)} already there`,
      failed > 0 && describeCount(failed, 'faulty line', 'faulty lines', 'left out'),
    ]),
  }
}

function tallyStatus({ lines, failed }: { lines: number; failed: number }) {
  if (failed === 0) return 'complete'
  return failed === lines ? 'failed' : 'partial'
}

const joinParts = (parts: (string | false | undefined)[]): string =>
  parts.filter(Boolean).join(', ')

const describeCount = (count: number, one: string, many: string, what: string): string =>
  `${formatCount(count)} ${count === 1 ? one : many} ${what}`

const formatCount = (count: number): string => count.toLocaleString('en')
