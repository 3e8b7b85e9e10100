import type { Filter } from 'mongodb'
import type { EmbeddedMemory, Tier, VaultScope } from '#shared/domain/memory.ts'
import type { RequestedWindow, TimeWindow } from '#shared/vault/read/time-window.ts'
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
} from '#shared/vault/read/listing.mongo.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import { metadataCondition, type Partition } from '#shared/storage/mongo/partition.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

export type TimelineQuery = {
  partition: Partition
  window: TimeWindow
  tiers: readonly Tier[]
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Rows without such metadata are left out. */
  metadata?: MetadataFilter | undefined
  /** Only what has a vector in this space. */
  space: string | undefined
}

type TimelineOrder = { oldestFirst: boolean }

/** Reflections in one window, or overlapping its end: enough for decades. */
const reflectionsMax = 5_000

/** Rows of one millisecond that page positions can count; later ones are ignored. */
const sameMomentMax = 100_000

/**
 * The ids of all rows of one millisecond, without order, and, when the window ends in it, of the
 * reflections that overlap the end.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
async function idsAt(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery,
  at: number,
): Promise<string[]> {
  const [own, overlapping] = await Promise.all([
    memories
      .find(
        { ...timelineFilter(scope, read), at: withinMillisecond(at) },
        { projection: { _id: 1 }, limit: sameMomentMax, ...indexRead(memories) },
      )
      .toArray()
      .catch(refuseWhenUnreachable),
    at === read.window.to.at ? overlappingReflections({ memories }, scope, read) : [],
  ])
  return [...own.map(({ _id }) => _id), ...overlapping.map(({ id }) => id)]
}

/** A vault to read a span of time from, and which of its memories. */
export type TimelineSource = { scope: VaultScope; read: Omit<TimelineQuery, 'window'> }

/** The ids of all rows of one millisecond in several sources, sorted. */
export async function allSourceIdsAt(
  mongo: Pick<Mongo, 'memories'>,
  sources: readonly TimelineSource[],
  window: TimeWindow,
  at: number,
): Promise<string[]> {
  const ids = await Promise.all(
    sources.map(({ scope, read }) => idsAt(mongo, scope, { ...read, window }, at)),
  )
  return ids.flat().sort()
}

/** Replaces the row numbers in the ends of a window by the ids of those rows. */
export async function resolveTimeWindow(
  mongo: Pick<Mongo, 'memories'>,
  sources: readonly TimelineSource[],
  { from, to, includeOverlapping, asOf }: RequestedWindow,
): Promise<TimeWindow> {
  const wholeMilliseconds: TimeWindow = {
    from: { at: from.at },
    to: { at: to.at },
    includeOverlapping,
    ...(asOf !== undefined && { asOf }),
  }
  const rowAt = async (at: number, row: number): Promise<string | undefined> =>
    (await allSourceIdsAt(mongo, sources, wholeMilliseconds, at))[row]
  const [first, last] = await Promise.all([
    from.skipped === 0 ? undefined : rowAt(from.at, from.skipped),
    to.last === null ? undefined : rowAt(to.at, to.last),
  ])
  const isMillisecondExhausted = from.skipped > 0 && first === undefined
  return {
    from: {
      at: isMillisecondExhausted ? from.at + 1 : from.at,
      ...(first !== undefined && { id: first }),
    },
    to: { at: to.at, ...(last !== undefined && { id: last }) },
    includeOverlapping,
    ...(asOf !== undefined && { asOf }),
  }
}

/**
 * The rows whose time lies in a window, in the order of time; read as they are consumed.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function* rowsWithin(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & TimelineOrder,
): AsyncGenerator<ListedRow, void, void> {
  const direction = read.oldestFirst ? 1 : -1
  const times = timeRanges(read.window)
  for (const time of read.oldestFirst ? times : times.toReversed()) {
    const cursor = memories.find(
      { ...timelineFilter(scope, read), ...time },
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
}

/**
 * The reflections whose period begins before the end of a window and ends after it; without order, at most
 * 5,000.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function overlappingReflections(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery,
): Promise<ListedRow[]> {
  if (!read.window.includeOverlapping || read.partition.session !== null) return []
  if (read.tiers.every(tier => tier === 1)) return []
  const rows = await memories
    .find(
      { ...timelineFilter(scope, reflectionsOnly(read)), ...overlappingEnd(read.window) },
      { projection: listedFields, limit: reflectionsMax, ...indexRead(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(listedRowFromDocument)
}

/**
 * All reflections of a window and those that overlap its end, with their vectors in the space; without
 * order, at most 5,000 of each kind.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function embeddedReflections(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineQuery & { space: string },
): Promise<{ memory: EmbeddedMemory; row: ListedRow }[]> {
  const kinds = timeRanges(read.window)
  if (read.window.includeOverlapping) kinds.push(overlappingEnd(read.window))
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
  { vault, epoch }: VaultScope,
  { partition, tiers, importance, metadata, space }: TimelineQuery,
): Filter<MemoryDocument> {
  return {
    vault: { $eq: vault },
    epoch: { $eq: epoch },
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

/**
 * The window as ranges of the index, in order. Where an end lies inside a millisecond, the rest of that
 * millisecond is a range of its own; it is not given as a value, so that the server reads it in order.
 */
function timeRanges({ from, to }: TimeWindow): Filter<MemoryDocument>[] {
  const first = { ...(from.id !== undefined && { $gte: from.id }) }
  const last = { ...(to.id !== undefined && { $lte: to.id }) }
  if (from.at === to.at && (from.id !== undefined || to.id !== undefined)) {
    return [{ at: withinMillisecond(from.at), _id: { ...first, ...last } }]
  }
  return [
    ...(from.id === undefined ? [] : [{ at: withinMillisecond(from.at), _id: first }]),
    {
      at: {
        [from.id === undefined ? '$gte' : '$gt']: new Date(from.at),
        [to.id === undefined ? '$lte' : '$lt']: new Date(to.at),
      },
    },
    ...(to.id === undefined ? [] : [{ at: withinMillisecond(to.at), _id: last }]),
  ]
}

const withinMillisecond = (at: number) => ({ $gt: new Date(at - 1), $lte: new Date(at) })

const overlappingEnd = ({ to, asOf }: TimeWindow): Filter<MemoryDocument> => ({
  at: { $gt: new Date(to.at), ...(asOf !== undefined && { $lte: new Date(asOf) }) },
  'covers.from': { $lte: new Date(to.at) },
})

const indexRead = (of: Mongo['memories']) => ({ hint: partitionIndex, signal: deadline(of) })
