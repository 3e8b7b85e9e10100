import { MongoServerError, type Filter, type Sort } from 'mongodb'
import { textPattern } from '#shared/vault/read/lists/text-pattern.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  tiers as allTiers,
  type Memory,
  type VaultScope,
  type Tier,
} from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline, deadlineMs } from '#shared/storage/mongo/deadline.ts'
import {
  memoryFromDocument,
  memoryFields,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { metadataCondition } from '#shared/storage/mongo/partition.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Span } from '#shared/domain/lease.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

/** A row as lists show it. */
export type ListedRow = Memory & {
  /** A reflection covers it. */
  consolidated: boolean
  /** The period that a reflection covers. */
  covers: Span | null
}

/** Importance, event time in epoch milliseconds and id of the last row of a page. */
export type ListPosition = [importance: number | null, at: number, id: string]

export type ListPageQuery = ListFilter &
  ListOrder & { after: ListPosition | undefined; count: number }

/** A text search reads every text: 60,000 short ones take 0.2 s. The server ends it before the driver. */
const searchReserveMs = 500

const maxTimeExpiredCode = 50

/**
 * The next `count` rows of the core vault in the requested order, read as a few ranges of one index each,
 * the next only when the one before has not filled the page. Every range names its index: with several to
 * choose from, the server runs them against each other first.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach, or a text search takes too long.
 */
export async function listedRows(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: ListPageQuery,
): Promise<ListedRow[]> {
  const signal = deadline(memories)
  const rowsIn = ({ filter, sort, hint }: IndexRange, limit: number): Promise<ListedRow[]> =>
    memories
      .find(
        {
          ...coreFilter(scope),
          ...textFilter(read.search),
          ...metadataCondition(read.metadata),
          ...filter,
        },
        {
          projection: listedFields,
          sort,
          hint,
          limit,
          signal,
          ...(read.search !== undefined && { maxTimeMS: deadlineMs(memories) - searchReserveMs }),
        },
      )
      .map(listedRowFromDocument)
      .toArray()
      .catch(refuseWhenSlow)

  const [first, second, ...others] = listRanges(read)
  // The rest of one millisecond rarely fills a page, so the range after it is read at the same time.
  const rows = (
    await Promise.all([
      first ? rowsIn(first, read.count) : [],
      second && read.after ? rowsIn(second, read.count) : [],
    ])
  ).flat()
  for (const range of second && !read.after ? [second, ...others] : others) {
    if (rows.length >= read.count) break
    rows.push(...(await rowsIn(range, read.count - rows.length)))
  }
  return rows.slice(0, read.count)
}

const coreFilter = ({ vault, epoch }: VaultScope): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
  session: { $eq: '' },
})

/** All but the vectors. */
export const listedFields = {
  ...memoryFields,
  consolidated: 1,
  covers: 1,
} as const

export function listedRowFromDocument(document: MemoryDocument): ListedRow {
  const { consolidated, covers } = document
  return {
    ...memoryFromDocument(document),
    consolidated,
    covers: covers ? { from: covers.from.getTime(), to: covers.to.getTime() } : null,
  }
}

type IndexRange = { filter: Filter<MemoryDocument>; sort: Sort; hint: string }

/** The index ranges of the rest of a list, in order. */
function listRanges(read: ListPageQuery): IndexRange[] {
  const { sort, after, importance } = read
  if (sort === 'date') {
    const rated = importance === undefined ? {} : { importance: { $gte: importance } }
    return rangesByTime(read, rated, after)
  }
  const isUnrated = after !== undefined && after[0] === null
  const ratedRanges = isUnrated || read.tier === 1 ? [] : rangesByImportance(read, after)
  if (importance !== undefined) return ratedRanges
  if (read.tier !== undefined && read.tier !== 1) return ratedRanges
  const raw = { ...read, tier: 1 as const }
  return [...ratedRanges, ...rangesByTime(raw, {}, isUnrated ? after : undefined)]
}

function rangesByTime(
  read: ListPageQuery,
  rated: Filter<MemoryDocument>,
  after: ListPosition | undefined,
): IndexRange[] {
  const sort: Sort = { at: directionOf(read), _id: directionOf(read) }
  const tier = { $in: read.tier === undefined ? [...allTiers] : [read.tier] }
  return timeRangesAfter(read, after).map(times => ({
    filter: { tier, ...rated, ...times },
    sort,
    hint: partitionIndex,
  }))
}

function rangesByImportance(read: ListPageQuery, after: ListPosition | undefined): IndexRange[] {
  const { importance: least = 1, order, tier } = read
  const direction = directionOf(read)
  const isFalling = order === 'newest_first'
  const lastImportance = after?.[0] ?? null
  const anytime = timeRangesAfter(read, undefined)
  const ratings =
    lastImportance === null
      ? [{ importance: { $gte: least }, times: anytime }]
      : [
          { importance: { $eq: lastImportance }, times: timeRangesAfter(read, after) },
          {
            importance: isFalling
              ? { $gte: least, $lt: lastImportance }
              : { $gt: Math.max(least, lastImportance) },
            times: anytime,
          },
        ]
  return ratings.flatMap(({ importance, times }) =>
    times.map(time => ({
      filter: { importance, ...(tier !== undefined && { tier: { $eq: tier } }), ...time },
      sort: { importance: direction, at: direction, _id: direction },
      hint: 'rated',
    })),
  )
}

const directionOf = ({ order }: ListOrder): 1 | -1 => (order === 'newest_first' ? -1 : 1)

/**
 * The times after a page: the rows after its last one in the same millisecond, then all later (or earlier)
 * milliseconds. The millisecond is given as a range: given as a value, the server reads and sorts all its
 * rows for each page (1,823 keys instead of 53 where 1,820 rows share it).
 */
function timeRangesAfter(
  { order, from, to }: ListPageQuery,
  after: ListPosition | undefined,
): Filter<MemoryDocument>[] {
  const window = {
    ...(from !== undefined && { $gte: new Date(from) }),
    ...(to !== undefined && { $lt: new Date(to) }),
  }
  if (!after) return [Object.keys(window).length > 0 ? { at: window } : {}]
  const [, at, id] = after
  const moment = new Date(at)
  const same = { $gt: new Date(at - 1), $lte: moment }
  return order === 'newest_first'
    ? [{ at: same, _id: { $lt: id } }, { at: { ...window, $lt: moment } }]
    : [{ at: same, _id: { $gt: id } }, { at: { ...window, $gt: moment } }]
}

const textFilter = (search: string | undefined): Filter<MemoryDocument> =>
  search === undefined ? {} : { text: { $regex: textPattern(search), $options: 'i' } }

function refuseWhenSlow(error: unknown): never {
  if (error instanceof MongoServerError && error.code === maxTimeExpiredCode) {
    throw new Refusal(
      'unavailable',
      'Looking through so many texts takes too long',
      'Narrow the list with tier, from or to',
    )
  }
  return refuseWhenUnreachable(error)
}

export type ListFilter = {
  tier: Tier | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Event times in [from, to), epoch milliseconds. */
  from: number | undefined
  to: number | undefined
  /** Rows without such metadata are left out. */
  metadata?: MetadataFilter | undefined
  /** Part of the text, case-insensitive. */
  search: string | undefined
}

export type ListOrder = {
  /** By importance: equal ones in the order of time, unrated rows last. */
  sort: 'date' | 'importance'
  /** Order in time; by importance the highest first, or the lowest. */
  order: 'newest_first' | 'oldest_first'
}
