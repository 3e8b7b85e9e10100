import type { Filter } from 'mongodb'
import type { Span } from '#shared/domain/lease.ts'
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
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import { toldFilter, type Partition } from '#shared/storage/mongo/partition.ts'
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
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & TimelineOrder,
): AsyncGenerator<ListedRow, void, void> {
  const projection = { ...listedFields, tags: 1, author: 1 }
  for await (const document of documentsWithin(mongo, scope, read, { projection, batchSize: 500 }))
    yield listedRowFromDocument(document)
}

async function* documentsWithin(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & TimelineOrder,
  options: { projection: object; batchSize: number },
): AsyncGenerator<MemoryDocument, void, void> {
  const direction = read.oldestFirst ? 1 : -1
  const filter = { ...timelineFilter(scope, read), ...timeRange(read.window) }
  const sort = { at: direction, _id: direction } as const
  try {
    yield* memories.find(filter, { ...options, sort, ...indexRead(memories) })
  } catch (error) {
    refuseWhenUnreachable(error)
  }
}

/** Rows that are read together, by whole milliseconds, and at most of one of these. */
const rowsAtOnce = 1_000
const rowsOfInstantMax = 10_000

/**
 * The raw memories that come first in a span [from, to), with their vectors in the space.
 *
 * @returns about 1,000 of them, and the part of the span of which they are all
 */
export async function embeddedWithin(
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: Omit<TimelineQuery, 'window'> & TimelineOrder & { space: string },
  { from, to }: Span,
): Promise<{ found: EmbeddedMemory[]; span: Span }> {
  const { oldestFirst, space } = read
  const raw = { ...read, tiers: [1] as const, window: { from, to: to - 1 } }
  const projection = embeddedMemoryProjection(space)
  const batchSize = rowsAtOnce + 1
  const found: EmbeddedMemory[] = []
  for await (const document of documentsWithin(mongo, scope, raw, { projection, batchSize })) {
    const row = embeddedMemoryFromDocument(document, space)
    if (found.length >= rowsAtOnce && row.at !== found.at(-1)!.at)
      return { found, span: oldestFirst ? { from, to: row.at } : { from: row.at + 1, to } }
    if (found.length < rowsOfInstantMax) found.push(row)
  }
  return { found, span: { from, to } }
}

/**
 * At most 5,000 reflections whose period begins before the end of a window and ends in it or after it, or only
 * those that end after it; in no order.
 */
export const overlappingReflections = async (
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & { endingAfter: boolean },
): Promise<ListedRow[]> =>
  (await reflectionDocuments(mongo, scope, read, listedFields)).map(listedRowFromDocument)

/** As `overlappingReflections`, all with a vector in the space, with these. */
export async function embeddedReflections(
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & { space: string },
): Promise<{ memory: EmbeddedMemory; row: ListedRow }[]> {
  const projection = { ...listedFields, ...embeddedMemoryProjection(read.space) }
  const asked = { ...read, endingAfter: false }
  return (await reflectionDocuments(mongo, scope, asked, projection)).map(document => ({
    memory: embeddedMemoryFromDocument(document, read.space),
    row: listedRowFromDocument(document),
  }))
}

async function reflectionDocuments(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & { endingAfter: boolean },
  projection: object,
): Promise<MemoryDocument[]> {
  const tiers = read.tiers.filter(tier => tier > 1)
  if (read.partition.session !== null || tiers.length === 0) return []
  const { window, endingAfter } = read
  const kinds = [overlappingEnd(window), ...(endingAfter ? [] : [timeRange(window)])]
  const filter = timelineFilter(scope, { ...read, tiers })
  const options = { projection, limit: reflectionsMax, ...indexRead(memories) }
  const batches = await Promise.all(
    kinds.map(kind => memories.find({ ...filter, ...kind }, options).toArray()),
  ).catch(refuseWhenUnreachable)
  return batches.flat()
}

function timelineFilter(
  scope: VaultScope,
  { partition, tiers, importance, condition, space }: Omit<TimelineQuery, 'window'>,
): Filter<MemoryDocument> {
  return {
    ...epochFilter(scope),
    session: { $eq: partition.session ?? '' },
    // The core vault has no session epoch; without this field the index alone serves the filter.
    ...(partition.session !== null && { session_epoch: { $eq: partition.sessionEpoch } }),
    tier: { $in: [...tiers] },
    ...toldFilter,
    ...(partition.tagSets && { tag_set: { $in: [...partition.tagSets] } }),
    ...(importance !== undefined && { importance: { $gte: importance } }),
    ...conditionFilter(condition),
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
