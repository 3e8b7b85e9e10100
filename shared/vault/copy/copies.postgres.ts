import {
  failureOfStatus,
  statusOfFailure,
  type FailureReason,
} from '#shared/domain/operation-outcome.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Source, destination and request of a copy. */
export type Copy = {
  operation: string
  source: string
  sourceEpoch: number
  /** Truncated. */
  sourceKey: string
  destination: string
  destinationEpoch: number
  destinationHash: Buffer
  /** Truncated. */
  destinationKey: string
  model: string
  /** Null for a transfer. */
  queries: string[] | null
  threshold: number | null
}

const columns = `c.operation, c.source, c.source_epoch as "sourceEpoch", c.source_key as "sourceKey",
  c.destination, c.destination_epoch as "destinationEpoch", c.destination_hash as "destinationHash",
  c.destination_key as "destinationKey", c.model, c.queries, c.threshold`

/** Memories that one job copies, oldest first. */
export type CopyChunk = {
  n: number
  /** Position of its first memory in the whole copy. */
  first: number
  ids: string[]
}

/** Inserts a copy and its chunks, in the transaction that accepts it. */
export async function insertCopy(
  query: Query,
  copy: Copy,
  chunks: readonly CopyChunk[],
): Promise<void> {
  await query(
    `insert into copies (operation, source, source_epoch, source_key, destination, destination_epoch,
                         destination_hash, destination_key, model, queries, threshold)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      copy.operation,
      copy.source,
      copy.sourceEpoch,
      copy.sourceKey,
      copy.destination,
      copy.destinationEpoch,
      copy.destinationHash,
      copy.destinationKey,
      copy.model,
      copy.queries === null ? null : JSON.stringify(copy.queries),
      copy.threshold,
    ],
    'copies.insert',
  )
  await query(
    `insert into copy_chunks (operation, n, first, ids)
     select $1, n, first, ids
     from jsonb_to_recordset($2::jsonb) as chunk(n int, first int, ids uuid[])`,
    [copy.operation, JSON.stringify(chunks)],
    'copies.insert-chunks',
  )
}

export type PendingCopyChunk = { copy: Copy & { askedAt: Date }; chunk: CopyChunk }

/** A chunk that is still to be copied; undefined when it is settled or its operation has ended. */
export async function findCopyChunk(
  query: Query,
  operation: string,
  n: number,
): Promise<PendingCopyChunk | undefined> {
  const { rows } = await query<Copy & CopyChunk & { askedAt: Date }>(
    `select ${columns}, c.asked_at as "askedAt", k.n, k.first, k.ids
     from copies c join copy_chunks k on k.operation = c.operation
     join operations o on o.id = c.operation and o.state in ('accepted', 'running', 'failed')
     where c.operation = $1 and k.n = $2 and not k.settled`,
    [operation, n],
    'copies.chunk',
  )
  const row = rows[0]
  if (!row) return undefined
  const { first, ids, ...copy } = row
  return { copy, chunk: { n, first, ids } }
}

/** The result of a chunk, in memories. */
export type CopyChunkResult = {
  copied: number
  skipped: number
  failed: number
  /** Of the copied memories. */
  tokens: number
  failure: { reason: FailureReason; error: string } | null
}

/** @returns false when the chunk was settled before: its effects must not count twice. */
export async function finalizeCopyChunk(
  query: Query,
  operation: string,
  n: number,
  { copied, skipped, failed, tokens, failure }: CopyChunkResult,
): Promise<boolean> {
  const { rowCount } = await query(
    `update copy_chunks set settled = true, copied = $3, skipped = $4, failed = $5, tokens = $6,
            error = $7, status = $8
     where operation = $1 and n = $2 and not settled`,
    [
      operation,
      n,
      copied,
      skipped,
      failed,
      tokens,
      failure?.error ?? null,
      failure && statusOfFailure(failure.reason),
    ],
    'copies.settle',
  )
  return rowCount === 1
}

/** The sums over the settled chunks of a copy. */
export type CopyTally = {
  chunks: number
  settled: number
  copied: number
  skipped: number
  failed: number
  tokens: number
  /** Of the first chunks that failed. */
  errors: string[]
  /** Of the first chunk that failed. */
  reason: FailureReason | null
}

const errorsMax = 20

export async function tallyCopy(query: Query, operation: string): Promise<CopyTally> {
  type Row = Omit<CopyTally, 'reason' | 'tokens'> & { tokens: string; status: number | null }
  const { rows } = await query<Row>(
    `select count(*)::int as chunks, count(*) filter (where settled)::int as settled,
            sum(copied)::int as copied, sum(skipped)::int as skipped, sum(failed)::int as failed,
            sum(tokens) as tokens,
            coalesce((array_agg(error order by n) filter (where error is not null))[1:${errorsMax}], '{}')
              as errors,
            (array_agg(status order by n) filter (where status is not null))[1] as status
     from copy_chunks where operation = $1`,
    [operation],
    'copies.tally',
  )
  const { status, tokens, ...tally } = rows[0]!
  return {
    ...tally,
    tokens: Number(tokens),
    reason: status === null ? null : failureOfStatus(status),
  }
}

/** Deletes copies whose operations have ended or were cancelled. */
export async function dropEndedCopies(query: Query): Promise<void> {
  await query(
    `delete from copies c using operations o
     where o.id = c.operation and o.state in ('done', 'cancelled')`,
    [],
    'copies.drop-ended',
  )
}

/** Deletes a copy whose operation has ended: its queries are personal texts. */
export async function dropCopy(query: Query, operation: string): Promise<void> {
  await query('delete from copies where operation = $1', [operation], 'copies.drop')
}

/** Whether the source was cleared or erased since the copy was accepted: it has none of its memories any more. */
export async function isSourceCleared(
  query: Query,
  { source, sourceEpoch }: Pick<Copy, 'source' | 'sourceEpoch'>,
): Promise<boolean> {
  const { rowCount } = await query(
    'select from vaults where id = $1 and epoch = $2',
    [source, sourceEpoch],
    'copies.source',
  )
  return rowCount === 0
}

type LockedCopy = {
  destinationEpoch: number
  account: string
  keyHash: Buffer
  queries: Copy['queries']
}

/**
 * Locks the vaults and the operation of a copy until the transaction ends, in the order of all such locks.
 *
 * @returns the destination's epoch, and the queries, which a clearing of the source may have erased;
 *   undefined when the operation has ended
 */
export async function lockCopy(
  query: Query,
  { operation, source, destination }: Pick<Copy, 'operation' | 'source' | 'destination'>,
): Promise<LockedCopy | undefined> {
  const { rows } = await query<{ id: string; epoch: number }>(
    `select id, epoch from vaults where id = any($1::uuid[]) order by id for no key update`,
    [[source, destination]],
    'copies.hold-vaults',
  )
  const operations = await query<{ account: string; keyHash: Buffer }>(
    `select account, key_hash as "keyHash" from operations
     where id = $1 and state in ('accepted', 'running', 'failed') for no key update`,
    [operation],
    'copies.hold-operation',
  )
  const owner = operations.rows[0]
  if (!owner) return undefined
  const epoch = rows.find(({ id }) => id === destination)?.epoch ?? 0
  const queryRows = await query<Pick<Copy, 'queries'>>(
    'select queries from copies where operation = $1 for share',
    [operation],
    'copies.hold-queries',
  )
  return { ...owner, destinationEpoch: epoch, queries: queryRows.rows[0]?.queries ?? null }
}
