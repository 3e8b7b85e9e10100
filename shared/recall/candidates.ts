import type { Span } from '#shared/recall/calendar.ts'
import { firstLender, lastLender } from '#shared/recall/neighbours.ts'
import type { Place } from '#shared/recall/place.ts'
import { topRows } from '#shared/recall/top-rows.ts'
import type { WordTable } from '#shared/recall/word-table.ts'

export type Candidates = {
  /** Ascending. */
  rows: Uint32Array
  /** 0 where there is no vector to compare with. */
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
export function candidatesIn(place: Place, search: Search): Candidates {
  const { block, first, end } = place
  const rows = new Set<number>()
  const known = new Map<number, number>()
  const byWords = topRows(search.table.sums, search.reach)
  for (let i = 0; i < byWords.length; i++) byWords[i]! += first
  const byMeaning = search.vector ? nearestIn(place, search.vector, search.reach, known) : []

  for (const best of [byWords, byMeaning]) {
    for (const row of best) rows.add(row)
    for (let i = 0; i < Math.min(leadersMax, best.length); i++) {
      const row = best[i]!
      // Whoever lends to a row is near enough to borrow from it.
      const last = lastLender(block, row, end)
      for (let near = firstLender(block, row, first); near <= last; near++) rows.add(near)
    }
  }
  addTimed(place, search, rows)

  const all = Uint32Array.from(rows).sort()
  const allowed = place.open ? all : all.filter(row => place.allows(row))
  return {
    rows: allowed,
    cosines: cosinesOf(place, allowed, search.vector, known),
    complete: rows.size >= end - first,
  }
}

/** Best first; their cosines are kept in `known`. */
function nearestIn(
  { block, first, end, open, allows }: Place,
  vector: Float32Array,
  reach: number,
  known: Map<number, number>,
): number[] {
  // Rows of low importance are found and thrown away: ask for more of them.
  const { rows, cosines } = block.nearest(vector, open ? reach : reach * 8, first, end)
  const near: number[] = []
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    known.set(row, cosines[i]!)
    if (open || allows(row)) near.push(row)
  }
  return near
}

function addTimed({ block, first, end }: Place, { times, vector }: Search, rows: Set<number>) {
  const most = rows.size + timedRowsMax
  for (const time of times) {
    const span = block.range(time.from, time.to)
    const from = Math.max(first, span.first)
    const to = Math.min(end, span.end)
    if (from >= to || rows.size >= most) continue
    if (vector && to - from > timedMax) {
      for (const row of block.nearest(vector, timedMax, from, to).rows) rows.add(row)
    } else for (let row = from; row < Math.min(to, from + timedMax); row++) rows.add(row)
  }
}

function cosinesOf(
  { block }: Place,
  rows: Uint32Array,
  vector: Float32Array | null,
  known: ReadonlyMap<number, number>,
): Float32Array {
  const cosines = new Float32Array(rows.length)
  if (!vector) return cosines
  const missing = rows.filter(row => !known.has(row))
  const found = block.cosines(vector, missing)
  let next = 0
  for (let i = 0; i < rows.length; i++) cosines[i] = known.get(rows[i]!) ?? found[next++]!
  return cosines
}
