import { createHash } from 'node:crypto'
import { Binary, MongoBulkWriteError } from 'mongodb'
import { Refusal } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { EmbeddedMemory, Memory, VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  toBinaryVector,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { idIndex, partitionIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { partitionFilter, type Partition } from '#shared/storage/mongo/partition.ts'

type Stats = {
  memories: number
  tokens: number
  oldest: number | null
  newest: number | null
}

/** Queries on vault memories. Each takes the scope first. */
export type MemoryStore = {
  /**
   * Stores memories, journaled. One whose id is taken, by a memory or a tombstone, is left as it is: storing
   * twice is storing once.
   */
  add(memories: readonly NewMemory[], space: string): Promise<void>
  /** Those of the ids that are taken. */
  findTakenIds(scope: Pick<VaultScope, 'vault'>, ids: readonly string[]): Promise<Set<string>>
  /** Streams all memories of a vault space in batches, unordered. */
  stream(
    scope: VaultScope,
    partition: Partition,
    space: string,
    onBatch: (rows: EmbeddedMemory[]) => void,
  ): Promise<void>
  /** Those of the ids that are visible in a partition, with their vectors. */
  byIds(
    scope: VaultScope,
    partition: Partition,
    space: string,
    ids: readonly string[],
  ): Promise<EmbeddedMemory[]>
  /** The number of memories in a vault space. */
  count(scope: VaultScope, partition: Partition, space: string): Promise<number>
  /**
   * Number, tokens, oldest and newest time of the memories of a vault, sessions included, without those of
   * cleared session epochs.
   */
  stats(
    scope: VaultScope,
    clearedSessions: readonly { session: string; upTo: number }[],
  ): Promise<Stats>
  /** Deletes memories of work whose vault or session was cleared; they were never visible. */
  discard(scope: Pick<VaultScope, 'vault'>, ids: readonly string[]): Promise<void>
}

export type NewMemory = Memory & {
  vault: string
  epoch: number
  session: string | null
  sessionEpoch: number
  operation: string
  vector: Float32Array
}

/** The engine re-reads its buffer for every chunk: beyond about 2 MB a message costs quadratic time. */
const batchBytes = 1_500_000

/** A vault as large as the whole index budget is read in seconds. */
const loadDeadlineMs = 60_000
const writeDeadlineMs = 20_000

export const duplicateKeyCode = 11_000

export function createMemoryStore({ memories }: Pick<Mongo, 'memories'>): MemoryStore {
  return {
    async add(added, space) {
      for (const batch of insertBatches(added)) {
        const documents = batch.map(memory => toMemoryDocument(memory, space))
        const insert = memories.insertMany(documents, { ordered: false })
        await withWriteTimeout(insert).catch(ignoreDuplicateKeys)
      }
    },

    async findTakenIds({ vault }, ids) {
      const filter = { vault: { $eq: vault }, _id: { $in: [...ids] } }
      const rows = await memories
        .find(filter, { projection: { _id: 1 }, hint: idIndex, signal: deadline() })
        .toArray()
        .catch(refuseWhenUnreachable)
      return new Set(rows.map(row => row._id))
    },

    async stream(scope, partition, space, onBatch) {
      const cursor = memories.find(partitionFilter(scope, partition, space), {
        projection: embeddedMemoryProjection(space),
        hint: partition.tagSets ? tagSetIndex : partitionIndex,
        batchSize: 500,
        signal: AbortSignal.timeout(loadDeadlineMs),
      })
      try {
        let rows: EmbeddedMemory[] = []
        for await (const document of cursor) {
          rows.push(embeddedMemoryFromDocument(document, space))
          if (rows.length === 500) {
            onBatch(rows)
            rows = []
          }
        }
        if (rows.length > 0) onBatch(rows)
      } catch (error) {
        refuseWhenUnreachable(error)
      }
    },

    async byIds(scope, partition, space, ids) {
      const filter = { ...partitionFilter(scope, partition, space), _id: { $in: [...ids] } }
      const rows = await memories
        .find(filter, {
          projection: embeddedMemoryProjection(space),
          hint: idIndex,
          signal: deadline(),
        })
        .toArray()
        .catch(refuseWhenUnreachable)
      return rows.map(row => embeddedMemoryFromDocument(row, space))
    },

    async count(scope, partition, space) {
      const options = { hint: partitionIndex, signal: deadline() }
      return memories
        .countDocuments(partitionFilter(scope, partition, space), options)
        .catch(refuseWhenUnreachable)
    },

    async stats({ vault, epoch }, clearedSessions) {
      const cleared = clearedSessions.map(({ session, upTo }) => ({
        session,
        session_epoch: { $lte: upTo },
      }))
      const $nor = cleared.length > 0 && { $nor: cleared }
      const [row] = await memories
        .aggregate<{ memories: number; tokens: number; oldest: Date; newest: Date }>(
          [
            { $match: { vault: { $eq: vault }, epoch: { $eq: epoch }, ...$nor } },
            {
              $group: {
                _id: null,
                memories: { $sum: 1 },
                tokens: { $sum: '$tokens' },
                oldest: { $min: '$at' },
                newest: { $max: '$at' },
              },
            },
          ],
          { hint: partitionIndex, signal: deadline() },
        )
        .toArray()
        .catch(refuseWhenUnreachable)
      if (!row) return { memories: 0, tokens: 0, oldest: null, newest: null }
      const { memories: count, tokens, oldest, newest } = row
      return { memories: count, tokens, oldest: oldest.getTime(), newest: newest.getTime() }
    },

    async discard({ vault }, ids) {
      await memories
        .deleteMany({ vault: { $eq: vault }, _id: { $in: [...ids] } }, { hint: idIndex })
        .catch(refuseWhenUnreachable)
    },
  }
}

/** SHA-256 of the NFC text without outer white space: equal for memories of the same content. */
export const contentHash = (text: string): Buffer =>
  createHash('sha256').update(text.normalize('NFC').trim()).digest()

const deadline = (): AbortSignal => AbortSignal.timeout(deadlineMs)

/** Refuses a write that is not acknowledged in 20 s; writes take no signal, and a retry stores once. */
export const withWriteTimeout = <Result>(write: Promise<Result>): Promise<Result> =>
  withTimeout(write, writeDeadlineMs, () => {
    throw new Refusal('unavailable', 'The memory store does not answer')
  })

/** A new document: raw and not consolidated. */
export function toMemoryDocument(memory: NewMemory, space: string): MemoryDocument {
  const { id, vault, epoch, session, sessionEpoch, operation, vector, text, at, ...rest } = memory
  return {
    _id: id,
    vault,
    epoch,
    session: session ?? '',
    session_epoch: sessionEpoch,
    tier: rest.tier,
    role: rest.role,
    text,
    hash: new Binary(contentHash(text)),
    at: new Date(at),
    stored_at: new Date(),
    tokens: rest.tokens,
    ...(rest.importance !== undefined && { importance: rest.importance }),
    ...(rest.speaker !== undefined && { speaker: rest.speaker }),
    ...(rest.interrupted && { interrupted: true }),
    ...(rest.expiresAt !== undefined && { expires_at: new Date(rest.expiresAt) }),
    ...(rest.expiresAsked !== undefined && { expires_asked: new Date(rest.expiresAsked) }),
    operation,
    vectors: { [space]: toBinaryVector(vector) },
    consolidated: false,
    version: 1,
  }
}

/** Cuts memories into batches of one insert message each. */
export function* insertBatches<Row extends NewMemory>(memories: readonly Row[]): Generator<Row[]> {
  let batch: Row[] = []
  let bytes = 0
  for (const memory of memories) {
    const size = memory.vector.byteLength + memory.text.length * 2 + 300
    if (batch.length > 0 && (bytes + size > batchBytes || batch.length === 500)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(memory)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

/** Ignores taken ids in an unordered insert. */
export function ignoreDuplicateKeys(error: unknown): void {
  if (error instanceof MongoBulkWriteError) {
    const failures = [error.writeErrors].flat()
    if (failures.length > 0 && failures.every(({ code }) => code === duplicateKeyCode)) return
  }
  refuseWhenUnreachable(error)
}
