import type { Filter } from 'mongodb'
import { createHash } from 'node:crypto'
import { Binary, MongoBulkWriteError } from 'mongodb'
import { createSlices } from '#shared/core/event-loop.ts'
import type { Feedback } from '#shared/domain/feedback.ts'
import { metadataTerms } from '#shared/domain/metadata.ts'
import type { EmbeddedMemory, Memory, VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  toBinaryVector,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { idIndex, partitionIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { partitionFilter, type Partition } from '#shared/storage/mongo/partition.ts'
import { isUnconfirmed } from '#shared/storage/mongo/server-errors.ts'
import {
  aggregateDocuments,
  findDocuments,
  epochFilter,
  countDocuments,
  withWriteTimeout,
} from '#shared/storage/mongo/commands.ts'

type Stats = {
  memories: number
  tokens: number
  oldest: number | null
  newest: number | null
  feedback: Record<Feedback, number>
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

/** Rows of one message, which arrives and is copied at once: 0.7 MB at 1,536 dimensions. */
const streamMessageRows = 100

/** Rows handed over at once: decoding them takes a few milliseconds. */
const streamBatchRows = 20

/** Loading 100,000 memories took 42 s on a busy machine. */
const loadDeadlineMs = 180_000

export const duplicateKeyCode = 11_000

/** Queries on vault memories. Each takes the scope first, except `add`, whose rows carry theirs. */
export class MemoryStore {
  readonly #memories: Mongo['memories']

  constructor({ memories }: Pick<Mongo, 'memories'>) {
    this.#memories = memories
  }

  /** Stores memories, journaled. One whose id is taken, by a memory or a tombstone, stays as it is. */
  async add(added: readonly NewMemory[], space: string): Promise<void> {
    for (const batch of insertBatches(added)) {
      const documents = batch.map(memory => toMemoryDocument(memory, space))
      const insert = this.#memories.insertMany(documents, { ordered: false })
      await withWriteTimeout(insert).catch(ignoreDuplicateKeys)
    }
  }

  /** Those of the ids that are taken. */
  async findTakenIds(
    { vault }: Pick<VaultScope, 'vault'>,
    ids: readonly string[],
  ): Promise<Set<string>> {
    const filter = { vault: { $eq: vault }, _id: { $in: [...ids] } }
    const rows = await findDocuments(this.#memories, filter, {
      projection: { _id: 1 },
      hint: idIndex,
    })
    return new Set(rows.map(row => row._id))
  }

  /** Streams all memories of a vault space in batches, unordered. */
  async stream(
    scope: VaultScope,
    partition: Partition,
    space: string,
    onBatch: (rows: EmbeddedMemory[]) => Promise<void> | void,
  ): Promise<void> {
    const cursor = this.#memories.find(partitionFilter(scope, partition, space), {
      projection: embeddedMemoryProjection(space),
      hint: partition.tagSets ? tagSetIndex : partitionIndex,
      batchSize: streamMessageRows,
      signal: deadline(this.#memories, loadDeadlineMs),
    })
    try {
      const slices = createSlices()
      let rows: EmbeddedMemory[] = []
      for await (const document of cursor) {
        rows.push(embeddedMemoryFromDocument(document, space))
        await slices.pause()
        if (rows.length < streamBatchRows) continue
        await onBatch(rows)
        rows = []
      }
      if (rows.length > 0) await onBatch(rows)
    } catch (error) {
      refuseWhenUnreachable(error)
    }
  }

  /** Those of the ids that are visible in a partition and pass a further filter, with their vectors. */
  async byIds(
    scope: VaultScope,
    partition: Partition,
    space: string,
    ids: readonly string[],
    further: Filter<MemoryDocument> = {},
  ): Promise<EmbeddedMemory[]> {
    const inPart = partitionFilter(scope, partition, space)
    const named = { ...inPart, ...further, _id: { $in: [...ids] } }
    const rows = await findDocuments(this.#memories, named, {
      projection: embeddedMemoryProjection(space),
      hint: idIndex,
    })
    return rows.map(row => embeddedMemoryFromDocument(row, space))
  }

  /** The number of memories in a vault space. */
  async count(scope: VaultScope, partition: Partition, space: string): Promise<number> {
    const filter = partitionFilter(scope, partition, space)
    return countDocuments(this.#memories, filter, { hint: partitionIndex })
  }

  /** Totals of the memories of a vault, sessions included, without those of cleared session epochs. */
  async stats(
    { vault, epoch }: VaultScope,
    clearedSessions: readonly { session: string; upTo: number }[],
  ): Promise<Stats> {
    const cleared = clearedSessions.map(({ session, upTo }) => ({
      session,
      session_epoch: { $lte: upTo },
    }))
    const $nor = cleared.length > 0 && { $nor: cleared }
    const [row] = await aggregateDocuments<
      Stats['feedback'] & {
        _id: null
        memories: number
        tokens: number
        oldest: Date
        newest: Date
      }
    >(
      this.#memories,
      [{ $match: { ...epochFilter({ vault, epoch }), ...$nor } }, { $group: totals }],
      { hint: partitionIndex },
    )
    if (!row) {
      const feedback = { right: 0, wrong: 0, outdated: 0, not_mine: 0 }
      return { memories: 0, tokens: 0, oldest: null, newest: null, feedback }
    }
    const { memories, tokens, oldest, newest, _id, ...feedback } = row
    return { memories, tokens, oldest: oldest.getTime(), newest: newest.getTime(), feedback }
  }

  /** Deletes memories of work whose vault or session was cleared; they were never visible. */
  async discard({ vault }: Pick<VaultScope, 'vault'>, ids: readonly string[]): Promise<void> {
    await this.#memories
      .deleteMany({ vault: { $eq: vault }, _id: { $in: [...ids] } }, { hint: idIndex })
      .catch(refuseWhenUnreachable)
  }
}

const countOf = (feedback: Feedback) => ({
  $sum: { $cond: [{ $eq: ['$feedback', feedback] }, 1, 0] },
})

const totals = {
  _id: null,
  memories: { $sum: 1 },
  tokens: { $sum: '$tokens' },
  oldest: { $min: '$at' },
  newest: { $max: '$at' },
  right: countOf('right'),
  wrong: countOf('wrong'),
  outdated: countOf('outdated'),
  not_mine: countOf('not_mine'),
}

/** SHA-256 of the NFC text without outer white space: equal for memories of the same content. */
export const contentHash = (text: string): Buffer =>
  createHash('sha256').update(text.normalize('NFC').trim()).digest()

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
    ...(rest.metadata && { metadata: metadataTerms(rest.metadata) }),
    ...(rest.piece && { piece: rest.piece }),
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

/** Ignores taken ids in an unordered insert that the majority confirmed. */
export function ignoreDuplicateKeys(error: unknown): void {
  if (error instanceof MongoBulkWriteError && !isUnconfirmed(error)) {
    const failures = [error.writeErrors].flat()
    if (failures.length > 0 && failures.every(({ code }) => code === duplicateKeyCode)) return
  }
  refuseWhenUnreachable(error)
}

/** The vault spaces of the first memory in the order of the index: as a rule the oldest one. */
export async function spacesOfOldest(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
): Promise<string[]> {
  const [row] = await findDocuments(memories, epochFilter(scope), {
    projection: { vectors: 1 },
    hint: partitionIndex,
    limit: 1,
  })
  return Object.keys(row?.vectors ?? {})
}
