import { comparePositions, isWithin, type TimeWindow } from '#shared/vault/read/time-window.ts'
import { overlappingReflections, rowsWithin } from '#shared/vault/read/timeline.mongo.ts'
import type { DateSearchRow, DateSearchSource } from '#shared/vault/read/dated-row.ts'
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

async function* rowsOfSource(
  { mongo }: { mongo: Mongo },
  { scope, read: sourceRead, source }: DateSearchSource,
  { window, oldestFirst, isBefore }: OrderedQuery,
): AsyncGenerator<DateSearchRow, void, void> {
  const read = { ...sourceRead, window, oldestFirst }
  const overlappingRows = (await overlappingReflections(mongo, scope, read))
    .map((row): DateSearchRow => ({ ...row, source, position: { at: window.to.at, id: row.id } }))
    .filter(({ position }) => isWithin(window, position))
    .sort((a, b) => (isBefore(a, b) ? -1 : 1))
  let next = 0
  for await (const within of rowsWithin(mongo, scope, read)) {
    const row: DateSearchRow = { ...within, source, position: { at: within.at, id: within.id } }
    while (next < overlappingRows.length && isBefore(overlappingRows[next]!, row))
      yield overlappingRows[next++]!
    yield row
  }
  yield* overlappingRows.slice(next)
}
