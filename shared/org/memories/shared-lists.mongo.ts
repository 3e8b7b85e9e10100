import type { Filter, Sort } from 'mongodb'
import type { Condition } from '#shared/domain/condition.ts'
import type { EmbeddedMemory, VaultScope, VaultEpoch } from '#shared/domain/memory.ts'
import {
  refuseWhenUnreachable,
  type Mongo,
  type MemoryCollection,
} from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { partitionIndex, reviewIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import {
  pendingPartition,
  sharedFields,
  sharedMemoryFilter,
  sharedMemoryFromDocument,
  vaultFilter,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'

export type SharedFilter = {
  tag: string | undefined
  author: string | undefined
  reviewed: boolean | undefined
  condition: Condition | undefined
  /** Only memories with one of these sets of tags. */
  tagSets?: readonly string[] | undefined
  /** Only memories that wait for a person, unseen by members; without it only the others. */
  pending?: boolean | undefined
}

/** Event time in epoch milliseconds and id of the last row of a page. */
export type SharedPosition = [at: number, id: string]

const newestFirst = { at: -1, _id: -1 } as const

async function findShared(
  { memories }: MemoryCollection,
  filter: Filter<MemoryDocument>,
  order: { sort: Sort; hint: string; limit: number },
): Promise<SharedMemory[]> {
  const rows = await memories
    .find(filter, { projection: sharedFields, ...order, signal: deadline(memories) })
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(sharedMemoryFromDocument)
}

/** Finds the next memories of a vault that a filter lets through, newest first. */
export const sharedPage = (
  mongo: MemoryCollection,
  scope: VaultEpoch,
  { after, count, ...filter }: SharedFilter & { after: SharedPosition | undefined; count: number },
): Promise<SharedMemory[]> =>
  findShared(
    mongo,
    { ...sharedMemoryFilter(scope), ...fieldFilter(filter), ...olderThan(after) },
    { sort: newestFirst, hint: partitionIndex, limit: count },
  )

/** Streams the newest memories that a filter lets through, with their vectors of one space. */
export async function* sharedVectors(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  { space, max, ...filter }: SharedFilter & { space: string; max: number },
): AsyncGenerator<EmbeddedMemory> {
  const cursor = memories.find(
    {
      ...sharedMemoryFilter(scope),
      ...fieldFilter(filter),
      [`vectors.${space}`]: { $exists: true },
    },
    {
      projection: embeddedMemoryProjection(space),
      sort: newestFirst,
      hint: partitionIndex,
      limit: max,
      batchSize: 250,
      signal: deadline(memories, 20_000),
    },
  )
  try {
    for await (const document of cursor) yield embeddedMemoryFromDocument(document, space)
  } catch (error) {
    refuseWhenUnreachable(error)
  }
}

/** Finds memories that are not reviewed and less sure than the threshold, the least sure or the newest first. */
export const findReviewQueue = (
  mongo: MemoryCollection,
  scope: VaultEpoch,
  { threshold, limit, newestFirst: byTime, ...fields }: ReviewQuery,
): Promise<SharedMemory[]> =>
  findShared(
    mongo,
    {
      ...vaultFilter(scope),
      ...fieldFilter(fields),
      reviewed: { $eq: false },
      confidence: { $lt: threshold },
    },
    { sort: byTime ? newestFirst : { confidence: 1, ...newestFirst }, hint: reviewIndex, limit },
  )

export type ReviewQuery = Pick<SharedFilter, 'tag' | 'author'> & {
  threshold: number
  limit: number
  newestFirst: boolean
}

/** Memories without a tag, those that wait for a person too. */
const untaggedFilter = (scope: VaultEpoch, label: string): Filter<MemoryDocument> => ({
  ...vaultFilter(scope),
  session: { $in: ['', pendingPartition] },
  tier: { $eq: 1 },
  tags: { $ne: label },
})

/** Finds the next memories that have not got a tag, newest first. */
export const untaggedPage = (
  mongo: MemoryCollection,
  scope: VaultEpoch,
  { label, after, count }: { label: string; after: SharedPosition | undefined; count: number },
): Promise<SharedMemory[]> =>
  findShared(
    mongo,
    { ...untaggedFilter(scope, label), ...olderThan(after) },
    { sort: newestFirst, hint: partitionIndex, limit: count },
  )

/** Counts the memories that have not got a tag, and the tokens of their texts. */
export async function countUntagged(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  label: string,
): Promise<{ memories: number; tokens: number }> {
  const [sums] = await memories
    .aggregate<{ memories: number; tokens: number }>(
      [
        { $match: untaggedFilter(scope, label) },
        { $group: { _id: null, memories: { $sum: 1 }, tokens: { $sum: '$tokens' } } },
      ],
      { hint: partitionIndex, signal: deadline(memories, 20_000) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return { memories: sums?.memories ?? 0, tokens: sums?.tokens ?? 0 }
}

const pendingFilter = (scope: VaultEpoch): Filter<MemoryDocument> => ({
  ...vaultFilter(scope),
  session: { $eq: pendingPartition },
})

/** Finds the id of a memory with exactly this text that waits for a person, unseen by members. */
export async function findPending(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  text: string,
): Promise<string | undefined> {
  const options = { projection: { _id: 1 }, hint: partitionIndex, signal: deadline(memories) }
  const found = await memories
    .findOne({ ...pendingFilter(scope), text: { $eq: text } }, options)
    .catch(refuseWhenUnreachable)
  return found?._id
}

/**
 * Counts the memories that wait for a person, unseen by members.
 *
 * @param tagSets counts those with one of these sets of tags; all without it
 */
export async function countPending(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  tagSets?: readonly string[],
): Promise<number> {
  const count = (filter: Filter<MemoryDocument>): Promise<number> =>
    memories
      .countDocuments(filter, { hint: partitionIndex, signal: deadline(memories) })
      .catch(refuseWhenUnreachable)
  // The index alone gives the number of all; tag sets are read from the documents.
  const all = await count(pendingFilter(scope))
  if (all === 0 || !tagSets) return all
  return count({ ...pendingFilter(scope), tag_set: { $in: [...tagSets] } })
}

/** Finds the newest memories with one of these sets of tags. */
export async function findNewestWithTagSets(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  { tagSets, max }: { tagSets: readonly string[]; max: number },
): Promise<{ id: string; tags: string[] }[]> {
  const rows = await memories
    .find(
      { ...vaultFilter(scope), tag_set: { $in: [...tagSets] } },
      {
        projection: { tags: 1 },
        sort: { at: -1 },
        hint: tagSetIndex,
        limit: max,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id, tags = [] }) => ({ id: _id, tags }))
}

function fieldFilter(filter: Partial<SharedFilter>): Filter<MemoryDocument> {
  const { tag, author, reviewed, condition, tagSets, pending } = filter
  return {
    ...(pending && { session: { $eq: pendingPartition } }),
    ...(tagSets && { tag_set: { $in: [...tagSets] } }),
    ...(tag !== undefined && { tags: { $eq: tag } }),
    ...(author !== undefined && { author: { $eq: author } }),
    ...(reviewed !== undefined && { reviewed: { $eq: reviewed } }),
    ...conditionFilter(condition),
  }
}

/** The rows that follow a position, newest first. */
const olderThan = (after: SharedPosition | undefined): Filter<MemoryDocument> => {
  if (!after) return {}
  const [at, id] = [new Date(after[0]), after[1]]
  return { at: { $lte: at }, $or: [{ at: { $lt: at } }, { at: { $eq: at }, _id: { $lt: id } }] }
}

/** A shared memory with the operation that made it, and its vector of the requested space. */
export type ExportedShared = SharedMemory & { operation: string; vector: Float32Array | undefined }

const batchSizes = { withVectors: 100, without: 500 }

/**
 * Streams the shared memories of an organization, oldest first. A reader that stops early closes the cursor.
 *
 * @param space the space of the vectors to include
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function* exportedShared(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  space: string | undefined,
): AsyncGenerator<ExportedShared> {
  const filter = { ...sharedMemoryFilter(scope), session: { $in: ['', pendingPartition] } }
  const cursor = memories.find(filter, {
    projection: {
      ...sharedFields,
      operation: 1,
      ...(space !== undefined && { [`vectors.${space}`]: 1 }),
    },
    sort: { at: 1, _id: 1 },
    hint: partitionIndex,
    batchSize: space === undefined ? batchSizes.without : batchSizes.withVectors,
  })
  try {
    for await (const document of cursor) {
      const { operation, vectors } = document
      const vector = space === undefined ? undefined : vectors[space]?.toFloat32Array()
      yield { ...sharedMemoryFromDocument(document), operation, vector }
    }
  } catch (error) {
    refuseWhenUnreachable(error)
  } finally {
    await cursor.close()
  }
}
