import type { Filter } from 'mongodb'
import type { EmbeddedMemory, Tier, VaultScope } from '#shared/domain/memory.ts'
import type { MemoryFilter } from '#shared/vault/read/search/nearest.ts'
import type { TimeWindow } from '#shared/vault/read/lists/time-window.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import {
  listedFields,
  listedRowFromDocument,
  type ListedRow,
} from '#shared/vault/read/lists/listing.mongo.ts'
import { metadataCondition, type Partition } from '#shared/storage/mongo/partition.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { epochFilter } from '#shared/storage/mongo/commands.ts'

export type TimelineQuery = Omit<MemoryFilter, 'tiers'> & {
  partition: Partition
  window: TimeWindow
  tiers: readonly Tier[]
  /** Only what has a vector in this space. */
  space: string | undefined
}

type TimelineOrder = { oldestFirst: boolean }

/** Reflections in one window, or overlapping its end: enough for decades. */
const reflectionsMax = 5_000

/** A vault to read a span of time from, and which of its memories. */
export type TimelineSource = { scope: VaultScope; read: Omit<TimelineQuery, 'window'> }

/** Streams the rows whose time lies in a window, in the order of time. */
export async function* rowsWithin(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & TimelineOrder,
): AsyncGenerator<ListedRow, void, void> {
  const direction = read.oldestFirst ? 1 : -1
  const cursor = memories.find(
    { ...timelineFilter(scope, read), ...timeRange(read.window) },
    {
      projection: { ...listedFields, tags: 1, author: 1 },
      sort: { at: direction, _id: direction },
      batchSize: 500,
      ...indexRead(memories),
    },
  )
  try {
    for await (const document of cursor) yield listedRowFromDocument(document)
  } catch (error) {
    refuseWhenUnreachable(error)
  }
}

/**
 * At most 5,000 reflections whose period begins before the end of a window and ends in it or after it, or only
 * those that end after it; in no order.
 */
export async function overlappingReflections(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & { endingAfter: boolean },
): Promise<ListedRow[]> {
  if (read.partition.session !== null || read.tiers.every(tier => tier === 1)) return []
  const { window, endingAfter } = read
  const kinds = [overlappingEnd(window), ...(endingAfter ? [] : [timeRange(window)])]
  const batches = await Promise.all(
    kinds.map(kind =>
      memories
        .find(
          { ...timelineFilter(scope, reflectionsOnly(read)), ...kind },
          { projection: listedFields, limit: reflectionsMax, ...indexRead(memories) },
        )
        .toArray(),
    ),
  ).catch(refuseWhenUnreachable)
  return batches.flat().map(listedRowFromDocument)
}

/**
 * All reflections of a window and those that overlap its end, with their vectors in the space; at most 5,000 of
 * each kind, in no order.
 */
export async function embeddedReflections(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & { space: string },
): Promise<{ memory: EmbeddedMemory; row: ListedRow }[]> {
  const kinds = [timeRange(read.window), overlappingEnd(read.window)]
  const batches = await Promise.all(
    kinds.map(kind =>
      memories
        .find(
          { ...timelineFilter(scope, reflectionsOnly(read)), ...kind },
          {
            projection: { ...listedFields, ...embeddedMemoryProjection(read.space) },
            limit: reflectionsMax,
            ...indexRead(memories),
          },
        )
        .toArray(),
    ),
  ).catch(refuseWhenUnreachable)
  return batches.flat().map(document => ({
    memory: embeddedMemoryFromDocument(document, read.space),
    row: listedRowFromDocument(document),
  }))
}

const reflectionsOnly = <Read extends TimelineQuery>(read: Read): Read => ({
  ...read,
  tiers: read.tiers.filter(tier => tier > 1),
})

function timelineFilter(
  scope: VaultScope,
  { partition, tiers, importance, metadata, space }: TimelineQuery,
): Filter<MemoryDocument> {
  return {
    ...epochFilter(scope),
    session: { $eq: partition.session ?? '' },
    // The core vault has no session epoch; without this field the index alone serves the filter.
    ...(partition.session !== null && { session_epoch: { $eq: partition.sessionEpoch } }),
    tier: { $in: [...tiers] },
    ...(partition.tagSets && { tag_set: { $in: [...partition.tagSets] } }),
    ...(importance !== undefined && { importance: { $gte: importance } }),
    ...metadataCondition(metadata),
    ...(space !== undefined && { [`vectors.${space}`]: { $exists: true } }),
  }
}

const timeRange = ({ from, to }: TimeWindow): Filter<MemoryDocument> => ({
  at: { $gte: new Date(from), $lte: new Date(to) },
})

const overlappingEnd = ({ to, asOf }: TimeWindow): Filter<MemoryDocument> => ({
  at: { $gt: new Date(to), ...(asOf !== undefined && { $lte: new Date(asOf) }) },
  'covers.from': { $lte: new Date(to) },
})

const indexRead = (of: Mongo['memories']) => ({ hint: partitionIndex, signal: deadline(of) })
