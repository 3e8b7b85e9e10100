import type { Concept } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/** What each row of a place is worth by its words. */
export type WordScores = {
  /** By distance from the place's first row, over all concepts. */
  readonly totals: Float32Array
  /** Where they are not 0: distances from the first row, each once, in no order. */
  readonly matchingRows: Uint32Array
  /** The scores of each concept, not yet capped by its worth: row `i` of concept `c` is at `c * rows + i`. */
  readonly byConcept: Float32Array
  readonly rowCount: number
  readonly concepts: readonly Concept[]
}

let scratchSums = new Float32Array(0)
let scratchRows = new Uint32Array(0)
let byConcept = new Float32Array(0)

/**
 * Naming a concept once is all it takes: synonyms in the same row add nothing. The arrays are
 * overwritten by the next call.
 */
export function scoreWords(
  { tierIndex, first, end }: SearchRange,
  concepts: readonly Concept[],
): WordScores {
  const rowCount = end - first
  if (scratchSums.length < rowCount) {
    scratchSums = new Float32Array(rowCount)
    scratchRows = new Uint32Array(rowCount)
  }
  if (byConcept.length < rowCount * concepts.length) {
    byConcept = new Float32Array(rowCount * concepts.length)
  }
  scratchSums.fill(0, 0, rowCount)
  byConcept.fill(0, 0, rowCount * concepts.length)
  let count = 0
  for (let c = 0; c < concepts.length; c++) {
    const { terms, maxScore } = concepts[c]!
    if (maxScore <= 0) continue
    const scores = byConcept.subarray(c * rowCount, (c + 1) * rowCount)
    const named = tierIndex.wordIndex.scoreRows(terms, first, end, scores)
    for (let i = 0; i < named.length; i++) {
      const row = named[i]!
      const score = scores[row]!
      if (scratchSums[row] === 0) scratchRows[count++] = row
      scratchSums[row]! += score < maxScore ? score : maxScore
    }
  }
  return {
    totals: scratchSums.subarray(0, rowCount),
    matchingRows: scratchRows.subarray(0, count),
    byConcept,
    rowCount,
    concepts,
  }
}
