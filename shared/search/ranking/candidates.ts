import type { Span } from '#shared/search/query/calendar.ts'
import type { Neighbours } from '#shared/search/ranking/adjacent-turns.ts'
import type { Place } from '#shared/search/ranking/source-position.ts'
import { createRowSet, type RowSet } from '#shared/search/ranking/row-set.ts'
import { topRows } from '#shared/search/ranking/top-rows.ts'
import type { WordTable } from '#shared/search/ranking/word-table.ts'

export type Candidates = {
  /** Ascending. */
  rows: Uint32Array
  /** By first sight; 0 where there is no vector to compare with. */
  cosines: Float32Array
  /** Whether every row of the place was considered. */
  complete: boolean
}

export type Search = {
  vector: Float32Array | null
  table: WordTable
  times: readonly Span[]
  /** How many rows to take by meaning and by words each. */
  reach: number
}

/** So many of the best rows bring those said around them, which may hold the answer. */
const leadersMax = 16
/** Of a time that is named, this many of its rows are looked at whatever they say. */
const timedMax = 60
const timedRowsMax = 4 * timedMax

/**
 * The rows of a place worth a closer look: best by words, best by meaning, what was said around
 * the best of both, and events of the times that are named.
 */
export function candidatesIn(
  place: Place,
  { firstLender, lastLender }: Neighbours,
  search: Search,
): Candidates {
  const { block, first, end, open } = place
  const { table, vector, reach } = search
  const rows = createRowSet(first, end)
  const byWords = topRows(table.sums, table.holders, reach)
  for (let i = 0; i < byWords.length; i++) byWords[i]! += first
  const byMeaning = vector ? nearRowsIn(place, vector, reach) : []

  for (const best of [byWords, byMeaning]) {
    for (let i = 0; i < best.length; i++) rows.add(best[i]!)
    for (let i = 0; i < Math.min(leadersMax, best.length); i++) {
      const row = best[i]!
      // Whoever lends to a row is near enough to borrow from it.
      const last = lastLender(row)
      for (let near = firstLender(row); near <= last; near++) rows.add(near)
    }
  }
  addTimed(place, search, rows)

  const all = rows.ascending()
  const allowed = open ? all : all.filter(row => place.allows(row))
  return {
    rows: allowed,
    cosines: vector ? block.glances(vector, allowed) : new Float32Array(allowed.length),
    complete: reach >= end - first || rows.size >= end - first,
  }
}

/** Best first. */
function nearRowsIn(
  { block, first, end, open, allows }: Place,
  vector: Float32Array,
  reach: number,
): Uint32Array {
  if (open) return block.nearRows(vector, reach, first, end)
  // Rows of low importance are found and thrown away: ask for more of them.
  return block.nearRows(vector, reach * 8, first, end).filter(allows)
}

function addTimed({ block, first, end }: Place, { times, vector }: Search, rows: RowSet) {
  const most = rows.size + timedRowsMax
  for (const time of times) {
    const span = block.range(time.from, time.to)
    const from = Math.max(first, span.first)
    const to = Math.min(end, span.end)
    if (from >= to || rows.size >= most) continue
    if (vector && to - from > timedMax) {
      for (const row of block.nearRows(vector, timedMax, from, to)) rows.add(row)
    } else for (let row = from; row < Math.min(to, from + timedMax); row++) rows.add(row)
  }
}
