import { comparePositions, type TimeWindow } from '#shared/vault/read/lists/time-window.ts'
import { overlappingReflections, rowsWithin } from '#shared/vault/read/lists/timeline.mongo.ts'
import type { ListedRow } from '#shared/vault/read/lists/listing.mongo.ts'
import type { DateSearchRow, DateSearchSource } from '#shared/vault/read/lists/dated-row.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

type ChronologicalQuery = {
  sources: readonly DateSearchSource[]
  window: TimeWindow
  oldestFirst: boolean
}

/** All rows of a window, of all sources, in the order of time; read from the database as they are consumed. */
export async function* chronological(
  backend: { mongo: Mongo },
  { sources, window, oldestFirst }: ChronologicalQuery,
): AsyncGenerator<DateSearchRow, void, void> {
  const isBefore = (one: DateSearchRow, other: DateSearchRow): boolean => {
    const order = comparePositions(one.position, other.position)
    return oldestFirst ? order < 0 : order > 0
  }
  const rowIterators = sources.map(source =>
    rowsOfSource(backend, source, { window, oldestFirst, isBefore }),
  )
  try {
    const heads = await Promise.all(rowIterators.map(rowIterator => rowIterator.next()))
    for (;;) {
      let first = -1
      for (const [index, { value }] of heads.entries()) {
        if (value && (first < 0 || isBefore(value, heads[first]!.value!))) first = index
      }
      if (first < 0) return
      yield heads[first]!.value!
      heads[first] = await rowIterators[first]!.next()
    }
  } finally {
    await Promise.all(rowIterators.map(rowIterator => rowIterator.return()))
  }
}

type OrderedQuery = Omit<ChronologicalQuery, 'sources'> & {
  isBefore(one: DateSearchRow, other: DateSearchRow): boolean
}

/**
 * A reflection follows the period that it is about in the direction of reading: oldest first it stands at the end of
 * the period, newest first at its beginning, or at the end of the window that is passed first. A client that goes on
 * from where a page ended moves the other end of the window, so each reflection keeps its place on all pages.
 */
async function* rowsOfSource(
  { mongo }: { mongo: Mongo },
  { scope, read: sourceRead, source }: DateSearchSource,
  { window, oldestFirst, isBefore }: OrderedQuery,
): AsyncGenerator<DateSearchRow, void, void> {
  const read = { ...sourceRead, window, oldestFirst }
  const placeOf = ({ at, covers }: ListedRow): number =>
    oldestFirst ? Math.min(at, window.to) : Math.max(covers?.from ?? at, window.from)
  const reflections = (
    await overlappingReflections(mongo, scope, { ...read, endingAfter: oldestFirst })
  )
    .map((row): DateSearchRow => ({ ...row, source, position: { at: placeOf(row), id: row.id } }))
    .sort((a, b) => (isBefore(a, b) ? -1 : 1))
  const isPlaced = read.partition.session === null && !oldestFirst
  const tiers = isPlaced ? read.tiers.filter(tier => tier === 1) : read.tiers
  let next = 0
  if (tiers.length > 0) {
    for await (const within of rowsWithin(mongo, scope, { ...read, tiers })) {
      const row: DateSearchRow = { ...within, source, position: { at: within.at, id: within.id } }
      while (next < reflections.length && isBefore(reflections[next]!, row))
        yield reflections[next++]!
      yield row
    }
  }
  yield* reflections.slice(next)
}
