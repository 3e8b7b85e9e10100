import type { Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex, partitionIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import type { Partition } from '#shared/storage/mongo/partition.ts'

/** What a person said, word for word. */
export type UserLine = {
  id: string
  text: string
  /** Epoch milliseconds. */
  at: number
  speaker?: string
  expiresAt?: number
  /** Of a shared memory. */
  tags?: string[]
  author?: string
}

const fields = { text: 1, at: 1, speaker: 1, expires_at: 1, tags: 1, author: 1 } as const

/** 100,000 lines are read in about 2 s; reading goes on while callers are told to come back. */
const readWithinMs = 120_000
const batchRows = 200

/**
 * The lines of people in a partition, in batches, unordered, of every vector space: nothing that a model
 * has said, no reflections, nothing that has been deleted.
 *
 * @param ids only these
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function* userLines(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  partition: Partition,
  ids?: readonly string[],
): AsyncGenerator<UserLine[], void, void> {
  if (partition.tagSets?.length === 0 || ids?.length === 0) return
  const shared = partition.tagSets ? tagSetIndex : partitionIndex
  const cursor = memories.find(
    { ...userFilter(scope, partition), ...(ids && { _id: { $in: [...ids] } }) },
    {
      projection: fields,
      hint: ids ? idIndex : shared,
      batchSize: batchRows,
      signal: deadline(memories, readWithinMs),
    },
  )
  try {
    let lines: UserLine[] = []
    for await (const document of cursor) {
      if (lines.push(toLine(document)) < batchRows) continue
      yield lines
      lines = []
    }
    yield lines
  } catch (error) {
    refuseWhenUnreachable(error)
  }
}

const userFilter = (
  { vault, epoch }: VaultScope,
  { session, sessionEpoch, tagSets }: Partition,
): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
  session: { $eq: session ?? '' },
  session_epoch: { $eq: sessionEpoch },
  tier: { $eq: 1 },
  role: { $eq: 'user' },
  // A tombstone has none.
  text: { $exists: true },
  ...(tagSets && { tag_set: { $in: [...tagSets] } }),
})

const toLine = ({ _id, text, at, ...rest }: MemoryDocument): UserLine => ({
  id: _id,
  text,
  at: at.getTime(),
  ...(rest.speaker !== undefined && { speaker: rest.speaker }),
  ...(rest.expires_at && { expiresAt: rest.expires_at.getTime() }),
  ...(rest.tags && { tags: rest.tags }),
  ...(rest.author !== undefined && { author: rest.author }),
})
