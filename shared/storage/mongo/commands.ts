import type {
  CountDocumentsOptions,
  AggregateOptions,
  Document,
  Filter,
  FindOptions,
} from 'mongodb'
import { Refusal } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { refuseWhenUnreachable } from '#shared/storage/mongo/server-errors.ts'

type Memories = Mongo['memories']

/**
 * Reads all documents that match. `filter` names the vault (`epochFilter`).
 *
 * @param ms default: 5 s, see `deadlineMs`
 * @throws Refusal `unavailable`, as all functions of this file.
 */
export const findDocuments = (
  memories: Memories,
  filter: Filter<MemoryDocument>,
  options: FindOptions,
  ms?: number,
): Promise<MemoryDocument[]> =>
  memories
    .find(filter, { ...options, signal: deadline(memories, ms) })
    .toArray()
    .catch(refuseWhenUnreachable)

/** Reads the first document that matches; null when there is none. */
export const findDocument = (
  memories: Memories,
  filter: Filter<MemoryDocument>,
  options: FindOptions,
  ms?: number,
): Promise<MemoryDocument | null> =>
  memories
    .findOne(filter, { ...options, signal: deadline(memories, ms) })
    .catch(refuseWhenUnreachable)

export const countDocuments = (
  memories: Memories,
  filter: Filter<MemoryDocument>,
  options: CountDocumentsOptions,
  ms?: number,
): Promise<number> =>
  memories
    .countDocuments(filter, { ...options, signal: deadline(memories, ms) })
    .catch(refuseWhenUnreachable)

export const aggregateDocuments = <Row extends Document>(
  memories: Memories,
  pipeline: Document[],
  options: AggregateOptions,
  ms?: number,
): Promise<Row[]> =>
  memories
    .aggregate<Row>(pipeline, { ...options, signal: deadline(memories, ms) })
    .toArray()
    .catch(refuseWhenUnreachable)

const writeDeadlineMs = 20_000

/** Refuses a write that is not acknowledged in 20 s; writes take no signal, and a retry stores once. */
export const withWriteTimeout = <Result>(write: Promise<Result>): Promise<Result> =>
  withTimeout(write, writeDeadlineMs, () => {
    throw new Refusal('unavailable', 'The memory store does not answer')
  })

/** Waits until a write is acknowledged. */
export const acknowledged = <Result>(write: Promise<Result>): Promise<Result> =>
  withWriteTimeout(write).catch(refuseWhenUnreachable)

/** The documents of an epoch of a vault, in its core and in all sessions. */
export const epochFilter = ({ vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>) => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

/** Those of the ids that exist in an epoch of a vault. */
export const idsFilter = (scope: Pick<VaultScope, 'vault' | 'epoch'>, ids: readonly string[]) => ({
  ...epochFilter(scope),
  _id: { $in: [...ids] },
})

/** Ids in one command: the engine re-reads its buffer for every chunk of a long message. */
const idsMax = 2_000

export function* idBatches(ids: readonly string[]): Generator<string[]> {
  for (let start = 0; start < ids.length; start += idsMax) yield ids.slice(start, start + idsMax)
}
