import type { Steps } from '#shared/core/event-loop.ts'
import type { Concept, Concepts } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import type { WeightedTerm } from '#shared/search/words/word-index.ts'

export type WordScores = {
  /** Sum over all concepts, by position. */
  readonly totals: Float32Array
  /** Positions where `totals` is not 0, each once, in no order. */
  readonly matching: Uint32Array
  /** The concepts with a score, by position: bit `c` for concept `c`. */
  readonly found: Uint32Array
  /**
   * Scores per concept, not capped by `maxScore`; concept `c` of position `i` is at `i * concepts.length + c`, and
   * undefined where `found` does not have it.
   */
  readonly byConcept: Float32Array
  readonly positions: Positions
  /** At most 32. */
  readonly concepts: readonly Concept[]
  /** The score of a row with all concepts of the query. */
  readonly maxTotal: number
  /** Frees the memory of the scores for the next search; they must not be read afterwards. */
  release(): void
}

/** Where scores of the rows of a range stand: one position for each text. */
export type Positions = {
  count: number
  /** The position of a row. */
  of(row: number): number
  /** The newest allowed row of the range with the text of a position; -1 where the range has none. */
  rowOf(position: number): number
  /** Whether every position has a row: the first of the range and the position. */
  hasAll: boolean
  /** Adds the scores of terms to `sums`, by position; see `WordIndex.scoreRows`. */
  score(terms: readonly WeightedTerm[], sums: Float32Array): Uint32Array
}

/** Positions are rows of the range, or the numbers of texts where texts have copies. */
export function positionsOf(range: SearchRange): Positions {
  const { tierIndex, first, end, allowsAll, newestOf } = range
  const { wordIndex } = tierIndex
  if (tierIndex.hasCopies) {
    const { textsEnd: count, textBySlot } = tierIndex
    return {
      count,
      of: row => tierIndex.textOf(row),
      rowOf: text => newestOf(tierIndex.homeOfText(text)),
      hasAll: false,
      score: (terms, sums) => wordIndex.scoreRows(terms, 0, count, sums, textBySlot),
    }
  }
  return {
    count: end - first,
    of: row => row - first,
    rowOf: at => (allowsAll ? first + at : newestOf(first + at)),
    hasAll: allowsAll,
    score: (terms, sums) => wordIndex.scoreRows(terms, first, end, sums),
  }
}

let scratchSums = new Float32Array(0)

/** Returns scratch for the sums of so many positions, all 0; the next call overwrites it. */
export function emptySums(count: number): Float32Array {
  if (scratchSums.length < count) scratchSums = new Float32Array(count)
  return scratchSums.fill(0, 0, count)
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
type Scratch = Pick<WordScores, 'totals' | 'matching' | 'found' | 'byConcept'>

const createScratch = (count: number, conceptCount: number): Scratch => ({
  totals: new Float32Array(count),
  matching: new Uint32Array(count),
  found: new Uint32Array(count),
  byConcept: new Float32Array(count * conceptCount),
})

/** Memory of ended searches for the next ones: new memory would cost more than the scores. */
const spares: Scratch[] = []
const sparesMax = 3

function reserve(count: number, conceptCount: number): Scratch {
  const spare = spares.pop()
  const fits = spare && spare.totals.length >= count
  return fits && spare.byConcept.length >= count * conceptCount
    ? spare
    : createScratch(count, conceptCount)
}

/**
 * Scores rows by BM25, each concept capped: synonyms in the same row add nothing beyond `maxScore`. A step is
 * one concept; the rows must not change before the last.
 */
export function* scoreWords(
  range: SearchRange,
  { matched: concepts, maxTotal }: Concepts,
): Steps<WordScores> {
  const positions = positionsOf(range)
  const { count } = positions
  const scratch = reserve(count, concepts.length)
  const { totals, matching, found, byConcept } = scratch
  totals.fill(0, 0, count)
  found.fill(0, 0, count)
  let matchingCount = 0
  for (const [c, { terms, maxScore }] of concepts.entries()) {
    if (c > 0) yield
    if (maxScore <= 0) continue
    const sums = emptySums(count)
    const rows = positions.score(terms, sums)
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!
      const score = sums[row]!
      if (found[row] === 0) matching[matchingCount++] = row
      found[row]! |= 1 << c
      byConcept[row * concepts.length + c] = score
      totals[row]! += score < maxScore ? score : maxScore
    }
  }
  return {
    totals: totals.subarray(0, count),
    matching: matching.subarray(0, matchingCount),
    found,
    byConcept,
    positions,
    concepts,
    maxTotal,
    release() {
      if (spares.length < sparesMax) spares.push(scratch)
    },
  }
}
