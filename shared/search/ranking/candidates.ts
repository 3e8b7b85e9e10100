import type { Steps } from '#shared/core/event-loop.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import type { AdjacentTurns } from '#shared/search/ranking/adjacent-turns.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { createRowSet, type RowSet } from '#shared/search/ranking/row-set.ts'
import { topRows } from '#shared/search/ranking/top-rows.ts'
import type { NearestRows } from '#shared/search/ranking/nearest-rows.ts'
import type { WordScores } from '#shared/search/ranking/score-words.ts'

export type Candidates = {
  /** Ascending. */
  rows: Uint32Array
  /** Approximate; 0 when the query has no vector. */
  cosines: Float32Array
  /** Whether every row of the range is a candidate. */
  complete: boolean
}

/** What a scan finds of a range; best first. */
export type ScannedRows = {
  /** Null: candidates by words and times only. */
  byVector: Uint32Array | null
  /** The nearest of the times with more rows than are taken of one. */
  byTime: ReadonlyMap<TimeSpan, Uint32Array>
}

export type ScanQuery = Pick<CandidateQuery, 'vector' | 'times' | 'candidateCount'> & {
  /** Null: a sentence that is not scanned for. */
  nearestRows: NearestRows | null
}

export type CandidateQuery = {
  vector: Float32Array | null
  scanned: ScannedRows
  wordScores: WordScores
  times: readonly TimeSpan[]
  /** They state an attribute that is asked for. */
  attributeRows: ReadonlySet<number>
  /** Rows to take by vector and by words each. */
  candidateCount: number
}

/** Number of best rows whose context also becomes candidates, as it may contain the answer. */
const contextSeedsMax = 16
/** Of a sentence that is not scanned for: the least share of its words, and the number of rows. */
const wordShareMin = 0.4
const wordOnlyMax = 12
/** Rows of each time named in the query that become candidates whatever their content. */
const rowsPerTimeMax = 60
const timeRowsMax = 4 * rowsPerTimeMax

/** Compares the rows of a range with the vector of a query, if any; in short steps. */
export function* scanRange(
  range: SearchRange,
  { vector, nearestRows, times, candidateCount }: ScanQuery,
): Steps<ScannedRows> {
  const byTime = new Map<TimeSpan, Uint32Array>()
  if (!vector) return { byVector: null, byTime }
  const byVector = nearestRows ? yield* nearestRows(range, vector, candidateCount) : null
  for (const time of range.allowsAll ? times : []) {
    const { from, to } = rowsWithin(range, time)
    if (to - from <= rowsPerTimeMax) continue
    const [nearest] = yield* range.tierIndex.approximateNearest([vector], rowsPerTimeMax, from, to)
    byTime.set(time, nearest!)
  }
  return { byVector, byTime }
}

function rowsWithin({ tierIndex, first, end }: SearchRange, time: TimeSpan) {
  const span = tierIndex.range(time.from, time.to)
  return { from: Math.max(first, span.first), to: Math.min(end, span.end) }
}

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
  const { vector, scanned, candidateCount } = search
  const rows = createRowSet(first, end)
  const byWords = rowsByWords(search, range)
  for (let i = 0; i < byWords.length; i++) byWords[i]! += first

  for (const best of [byWords, scanned.byVector ?? []]) {
    for (let i = 0; i < best.length; i++) rows.add(best[i]!)
    for (let i = 0; i < Math.min(contextSeedsMax, best.length); i++) {
      const row = best[i]!
      const last = lastContextRow(row)
      for (let near = firstContextRow(row); near <= last; near++) rows.add(near)
    }
  }
  addRowsWithinTimes(range, search, rows)
  for (const row of search.attributeRows) rows.add(row)

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

/** Distances from the first row, best first; without a scan only rows with most of the words. */
function rowsByWords(
  { wordScores, scanned, vector, candidateCount }: CandidateQuery,
  { first, allowsAll, allows }: SearchRange,
): number[] {
  const { totals, maxTotal } = wordScores
  const matchingRows = allowsAll
    ? wordScores.matchingRows
    : wordScores.matchingRows.filter(row => allows(first + row))
  if (scanned.byVector || !vector) return topRows(totals, matchingRows, candidateCount)
  const least = wordShareMin * maxTotal
  const telling = matchingRows.filter(row => totals[row]! >= least)
  return topRows(totals, telling, wordOnlyMax)
}

function addRowsWithinTimes(range: SearchRange, { times, scanned }: CandidateQuery, rows: RowSet) {
  const sizeMax = rows.size + timeRowsMax
  for (const time of times) {
    const { from, to } = rowsWithin(range, time)
    if (from >= to || rows.size >= sizeMax) continue
    const nearest = scanned.byTime.get(time)
    if (!range.allowsAll) {
      let added = 0
      for (let row = from; row < to && added < rowsPerTimeMax; row++) {
        if (!range.allows(row)) continue
        rows.add(row)
        added++
      }
    } else if (nearest) {
      for (const row of nearest) rows.add(row)
    } else for (let row = from; row < Math.min(to, from + rowsPerTimeMax); row++) rows.add(row)
  }
}
