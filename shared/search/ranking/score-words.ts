import type { Steps } from '#shared/core/event-loop.ts'
import type { Concept, Concepts } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'

export type WordScores = {
  /** Sum over all concepts, by position. */
  readonly totals: Float32Array
  /** Positions where `totals` is not 0, each once, in no order. */
  readonly matching: Uint32Array
  /** Scores per concept, not capped by `maxScore`; position `i` of concept `c` is at `c * positionCount + i`. */
  readonly byConcept: Float32Array
  readonly positionCount: number
  readonly positions: Positions
  readonly concepts: readonly Concept[]
  /** The score of a row with all concepts of the query. */
  readonly maxTotal: number
  /** Frees the memory of the scores for the next search; they must not be read afterwards. */
  release(): void
}

/** Where scores of the rows of a range stand: one position for each text. */
export type Positions = {
  /** The rows of the tier that have positions: those of the range, or all where texts have copies. */
  first: number
  end: number
  /** The position of a row. */
  of(row: number): number
  /** The newest allowed row of the range with the text of a position; -1 where the range has none. */
  rowOf(position: number): number
  /** Whether every position has a row: `first` and the position. */
  hasAll: boolean
}

export function positionsOf({
  tierIndex,
  first,
  end,
  allowsAll,
  newestOf,
}: SearchRange): Positions {
  if (tierIndex.hasCopies) {
    const of = (row: number): number => tierIndex.homeRow(row)
    return { first: 0, end: tierIndex.count, of, rowOf: newestOf, hasAll: false }
  }
  const of = (row: number): number => row - first
  const rowOf = (at: number): number => (allowsAll ? first + at : newestOf(first + at))
  return { first, end, of, rowOf, hasAll: allowsAll }
}

/** The allowed rows with words of the query, one of each text, in no order. */
export function rowsWithWords({ matching, positions }: WordScores): Int32Array {
  const { rowOf } = positions
  const rows = new Int32Array(matching.length)
  let count = 0
  for (let i = 0; i < matching.length; i++) {
    const row = rowOf(matching[i]!)
    if (row >= 0) rows[count++] = row
  }
  return rows.subarray(0, count)
}

/** Memory for the scores of one search; concurrent searches have their own. */
type Scratch = { totals: Float32Array; matching: Uint32Array; byConcept: Float32Array }

const createScratch = (): Scratch => ({
  totals: new Float32Array(0),
  matching: new Uint32Array(0),
  byConcept: new Float32Array(0),
})

/** Memory of ended searches for the next ones: new memory would cost more than the scores. */
const spares: Scratch[] = []
const sparesMax = 3

function reserve(scratch: Scratch, rowCount: number, conceptCount: number) {
  if (scratch.totals.length < rowCount) {
    scratch.totals = new Float32Array(rowCount)
    scratch.matching = new Uint32Array(rowCount)
  }
  if (scratch.byConcept.length < rowCount * conceptCount) {
    scratch.byConcept = new Float32Array(rowCount * conceptCount)
  }
}

/**
 * Scores rows by BM25, each concept capped: synonyms in the same row add nothing beyond `maxScore`. A step is
 * one concept; the rows must not change before the last.
 */
export function* scoreWords(
  range: SearchRange,
  { matched: concepts, maxTotal }: Concepts,
): Steps<WordScores> {
  const { tierIndex } = range
  const positions = positionsOf(range)
  const { first, end } = positions
  const rowCount = end - first
  const scratch = spares.pop() ?? createScratch()
  reserve(scratch, rowCount, concepts.length)
  const { totals, matching, byConcept } = scratch
  totals.fill(0, 0, rowCount)
  let count = 0
  for (let c = 0; c < concepts.length; c++) {
    if (c > 0) yield
    const { terms, maxScore } = concepts[c]!
    const scores = byConcept.subarray(c * rowCount, (c + 1) * rowCount).fill(0)
    if (maxScore <= 0) continue
    const found = tierIndex.wordIndex.scoreRows(terms, first, end, scores)
    for (let i = 0; i < found.length; i++) {
      const row = found[i]!
      const score = scores[row]!
      if (totals[row] === 0) matching[count++] = row
      totals[row]! += score < maxScore ? score : maxScore
    }
  }
  return {
    totals: totals.subarray(0, rowCount),
    matching: matching.subarray(0, count),
    byConcept,
    positionCount: rowCount,
    positions,
    concepts,
    maxTotal,
    release() {
      if (spares.length < sparesMax) spares.push(scratch)
    },
  }
}
