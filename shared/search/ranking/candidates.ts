import type { TimeSpan } from '#shared/search/query/calendar.ts'
import type { AdjacentTurns } from '#shared/search/ranking/adjacent-turns.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { createRowSet, type RowSet } from '#shared/search/ranking/row-set.ts'
import { topRows } from '#shared/search/ranking/top-rows.ts'
import type { WordScores } from '#shared/search/ranking/score-words.ts'

export type Candidates = {
  /** Ascending. */
  rows: Uint32Array
  /** Approximate; 0 when the query has no vector. */
  cosines: Float32Array
  /** Whether every row of the range is a candidate. */
  complete: boolean
}

export type CandidateQuery = {
  vector: Float32Array | null
  wordScores: WordScores
  times: readonly TimeSpan[]
  /** Rows to take by vector and by words each. */
  candidateCount: number
}

/** Number of best rows whose context also becomes candidates, as it may contain the answer. */
const contextSeedsMax = 16
/** Rows of each time named in the query that become candidates whatever their content. */
const rowsPerTimeMax = 60
const timeRowsMax = 4 * rowsPerTimeMax

/**
 * The rows of a range to score: the best by words, the best by vector, the context of the best of
 * both, and rows of the times named in the query.
 */
export function findCandidates(
  range: SearchRange,
  { firstContextRow, lastContextRow }: AdjacentTurns,
  search: CandidateQuery,
): Candidates {
  const { tierIndex, first, end, allowsAll } = range
  const { wordScores, vector, candidateCount } = search
  const rows = createRowSet(first, end)
  const byWords = topRows(wordScores.totals, wordScores.matchingRows, candidateCount)
  for (let i = 0; i < byWords.length; i++) byWords[i]! += first
  const byVector = vector ? nearestAllowedRows(range, vector, candidateCount) : []

  for (const best of [byWords, byVector]) {
    for (let i = 0; i < best.length; i++) rows.add(best[i]!)
    for (let i = 0; i < Math.min(contextSeedsMax, best.length); i++) {
      const row = best[i]!
      const last = lastContextRow(row)
      for (let near = firstContextRow(row); near <= last; near++) rows.add(near)
    }
  }
  addRowsWithinTimes(range, search, rows)

  const all = rows.ascending()
  const allowed = allowsAll ? all : all.filter(row => range.allows(row))
  return {
    rows: allowed,
    cosines: vector
      ? tierIndex.approximateCosines(vector, allowed)
      : new Float32Array(allowed.length),
    complete: candidateCount >= end - first || rows.size >= end - first,
  }
}

/** Best first. */
function nearestAllowedRows(
  { tierIndex, first, end, allowsAll, allows }: SearchRange,
  vector: Float32Array,
  candidateCount: number,
): Uint32Array {
  if (allowsAll) return tierIndex.approximateNearest(vector, candidateCount, first, end)
  // Rows of low importance are filtered out afterwards: fetch more.
  return tierIndex.approximateNearest(vector, candidateCount * 8, first, end).filter(allows)
}

function addRowsWithinTimes(
  { tierIndex, first, end }: SearchRange,
  { times, vector }: CandidateQuery,
  rows: RowSet,
) {
  const sizeMax = rows.size + timeRowsMax
  for (const time of times) {
    const span = tierIndex.range(time.from, time.to)
    const from = Math.max(first, span.first)
    const to = Math.min(end, span.end)
    if (from >= to || rows.size >= sizeMax) continue
    if (vector && to - from > rowsPerTimeMax) {
      for (const row of tierIndex.approximateNearest(vector, rowsPerTimeMax, from, to))
        rows.add(row)
    } else for (let row = from; row < Math.min(to, from + rowsPerTimeMax); row++) rows.add(row)
  }
}
