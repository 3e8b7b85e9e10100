import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Binary, MongoBulkWriteError } from 'mongodb'
import { Refusal } from '#shared/core/errors.ts'
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

/** Every query on vault memories. Each takes the scope first; none can be written without one. */
export type MemoryStore = {
  /**
   * Stores promised memories, journaled. One whose id is taken, by itself or by its tombstone, is
   * left as it is: storing twice is storing once.
   */
  add(memories: readonly NewMemory[], space: string): Promise<void>
  /** Which of these ids are taken already. */
  findTakenIds(scope: Pick<VaultScope, 'vault'>, ids: readonly string[]): Promise<Set<string>>
  /** Streams a whole vault space in batches, without order. */
  stream(
    scope: VaultScope,
    partition: Partition,
    space: string,
    onBatch: (rows: EmbeddedMemory[]) => void,
  ): Promise<void>
  /** Those of the given ids that can be seen in a place, with their vectors. */
  byIds(
    scope: VaultScope,
    partition: Partition,
    space: string,
    ids: readonly string[],
  ): Promise<EmbeddedMemory[]>
  /** How many memories a vault space holds. */
  count(scope: VaultScope, partition: Partition, space: string): Promise<number>
  /**
   * Counts, tokens and the span of time over the whole vault, sessions included; without what is left
   * of sessions up to an epoch of theirs.
   */
  stats(
    scope: VaultScope,
    clearedSessions: readonly { session: string; upTo: number }[],
  ): Promise<Stats>
  /** Removes documents of work that a deletion has overtaken; they were never visible. */
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

/** A vault of the whole image budget is read in seconds. */
const loadDeadlineMs = 60_000
const writeDeadlineMs = 20_000

export const duplicateKeyCode = 11_000

export function createMemoryStore({ memories }: Pick<Mongo, 'memories'>): MemoryStore {
  return {
    async add(added, space) {
      for (const batch of insertBatches(added)) {
        const documents = batch.map(memory => toMemoryDocument(memory, space))
        const inserting = memories.insertMany(documents, { ordered: false })
        await withWriteTimeout(inserting).catch(ignoreDuplicateKeys)
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
      const gone = clearedSessions.map(one => ({
        session: one.session,
        session_epoch: { $lte: one.upTo },
      }))
      const $nor = gone.length > 0 && { $nor: gone }
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

/** SHA-256 of the NFC text without outer white space: what makes two memories the same content. */
export const contentHash = (text: string): Buffer =>
  createHash('sha256').update(text.normalize('NFC').trim()).digest()

const deadline = (): AbortSignal => AbortSignal.timeout(deadlineMs)

/** Writes take no signal: a server that has gone silent is given up, and storing again stores once. */
export async function withWriteTimeout<Result>(write: Promise<Result>): Promise<Result> {
  const done = new AbortController()
  const late = delay(writeDeadlineMs, null, { ref: false, signal: done.signal }).then(() => {
    throw new Refusal('unavailable', 'The memory store does not answer')
  })
  try {
    return await Promise.race([write, late])
  } finally {
    done.abort()
  }
}

/** A memory as a new document, raw and not consolidated. */
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

/** Cuts memories into messages the server takes in one go. */
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

/** Of an unordered insert: ids that are taken already are no failure. */
export function ignoreDuplicateKeys(error: unknown): void {
  if (error instanceof MongoBulkWriteError) {
    const failures = [error.writeErrors].flat()
    if (failures.length > 0 && failures.every(({ code }) => code === duplicateKeyCode)) return
  }
  refuseWhenUnreachable(error)
}
