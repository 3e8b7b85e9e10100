import type { Filter } from 'mongodb'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { partitionIndex, reviewIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { metadataCondition } from '#shared/storage/mongo/partition.ts'
import {
  pendingPartition,
  sharedFields,
  sharedMemoryFilter,
  sharedMemoryFromDocument,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'

type Collections = Pick<Mongo, 'memories'>
type Scope = Pick<VaultScope, 'vault' | 'epoch'>

export type SharedFilter = {
  tag: string | undefined
  author: string | undefined
  reviewed: boolean | undefined
  metadata: MetadataFilter | undefined
}

/** Event time in epoch milliseconds and id of the last row of a page. */
export type SharedPosition = [at: number, id: string]

/** The next rows of a vault, newest first. */
export async function sharedPage(
  { memories }: Collections,
  scope: Scope,
  { after, count, ...filter }: SharedFilter & { after: SharedPosition | undefined; count: number },
): Promise<SharedMemory[]> {
  const rows = await memories
    .find(
      { ...sharedMemoryFilter(scope), ...fieldFilter(filter), ...(after && olderThan(after)) },
      {
        projection: sharedFields,
        sort: { at: -1, _id: -1 },
        hint: partitionIndex,
        limit: count,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(sharedMemoryFromDocument)
}

/** The newest rows that a filter lets through, with their vectors of one space. */
export async function* sharedVectors(
  { memories }: Collections,
  scope: Scope,
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
      sort: { at: -1, _id: -1 },
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

/** Memories that are not reviewed and less sure than the threshold. */
export async function findReviewQueue(
  { memories }: Collections,
  { vault, epoch }: Scope,
  { threshold, limit, newestFirst }: { threshold: number; limit: number; newestFirst: boolean },
): Promise<SharedMemory[]> {
  const rows = await memories
    .find(
      {
        vault: { $eq: vault },
        epoch: { $eq: epoch },
        reviewed: { $eq: false },
        confidence: { $lt: threshold },
      },
      {
        projection: sharedFields,
        sort: newestFirst ? { at: -1, _id: -1 } : { confidence: 1, at: -1, _id: -1 },
        hint: reviewIndex,
        limit,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(sharedMemoryFromDocument)
}

/** Memories without a tag, waiting ones too. */
const untaggedFilter = ({ vault, epoch }: Scope, label: string): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
  session: { $in: ['', pendingPartition] },
  tier: { $eq: 1 },
  tags: { $ne: label },
})

/** The next memories that have not got a tag, newest first. */
export async function untaggedPage(
  { memories }: Collections,
  scope: Scope,
  { label, after, count }: { label: string; after: SharedPosition | undefined; count: number },
): Promise<SharedMemory[]> {
  const rows = await memories
    .find(
      { ...untaggedFilter(scope, label), ...(after && olderThan(after)) },
      {
        projection: sharedFields,
        sort: { at: -1, _id: -1 },
        hint: partitionIndex,
        limit: count,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(sharedMemoryFromDocument)
}

/** How many memories have not got a tag, and the tokens of their texts. */
export async function countUntagged(
  { memories }: Collections,
  scope: Scope,
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

/** The memory with exactly this text that waits for a person, unseen by members; undefined without one. */
export async function findPending(
  { memories }: Collections,
  { vault, epoch }: Scope,
  text: string,
): Promise<string | undefined> {
  const found = await memories
    .findOne(
      {
        vault: { $eq: vault },
        epoch: { $eq: epoch },
        session: { $eq: pendingPartition },
        text: { $eq: text },
      },
      { projection: { _id: 1 }, hint: partitionIndex, signal: deadline(memories) },
    )
    .catch(refuseWhenUnreachable)
  return found?._id
}

/**
 * How many memories wait for a person, unseen by members.
 *
 * @param tagSets counts those with one of these sets of tags; without it all
 */
export async function countPending(
  { memories }: Collections,
  { vault, epoch }: Scope,
  tagSets?: readonly string[],
): Promise<number> {
  const waiting = {
    vault: { $eq: vault },
    epoch: { $eq: epoch },
    session: { $eq: pendingPartition },
  }
  const count = (filter: object): Promise<number> =>
    memories
      .countDocuments(filter, { hint: partitionIndex, signal: deadline(memories) })
      .catch(refuseWhenUnreachable)
  // The index tells all of them alone; their tags are in the documents.
  const all = await count(waiting)
  return all === 0 || !tagSets ? all : count({ ...waiting, tag_set: { $in: [...tagSets] } })
}

/** The newest memories with one of these sets of tags, regardless of anything else. */
export async function findNewestWithTagSets(
  { memories }: Collections,
  { vault, epoch }: Scope,
  { tagSets, max }: { tagSets: readonly string[]; max: number },
): Promise<{ id: string; tags: string[] }[]> {
  const rows = await memories
    .find(
      { vault: { $eq: vault }, epoch: { $eq: epoch }, tag_set: { $in: [...tagSets] } },
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

function fieldFilter({ tag, author, reviewed, metadata }: SharedFilter): Filter<MemoryDocument> {
  return {
    ...(tag !== undefined && { tags: { $eq: tag } }),
    ...(author !== undefined && { author: { $eq: author } }),
    ...(reviewed !== undefined && { reviewed: { $eq: reviewed } }),
    ...metadataCondition(metadata),
  }
}

/** Of one millisecond, the ids that follow; of earlier ones, all. */
const olderThan = ([at, id]: SharedPosition): Filter<MemoryDocument> => ({
  at: { $lte: new Date(at) },
  $or: [{ at: { $lt: new Date(at) } }, { at: { $eq: new Date(at) }, _id: { $lt: id } }],
})

/** A shared memory with the operation that made it, and its vector of the requested space. */
export type ExportedShared = SharedMemory & { operation: string; vector: Float32Array | undefined }

/** As `exportedDocuments` reads. */
const batchSizes = { withVectors: 100, without: 500 }

/**
 * Streams the shared memories of an organization, oldest first, in the order of one index. A reader that
 * stops early closes the cursor.
 *
 * @param space whose vectors are included
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
