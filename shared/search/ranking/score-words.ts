import type { Concept } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/** The word scores of the rows of a range. */
export type WordScores = {
  /** Sum over all concepts, by distance from the first row. */
  readonly totals: Float32Array
  /** Where they are not 0: distances from the first row, each once, in no order. */
  readonly matchingRows: Uint32Array
  /** Scores per concept, not capped by `maxScore`: row `i` of concept `c` is at `c * rowCount + i`. */
  readonly byConcept: Float32Array
  readonly rowCount: number
  readonly concepts: readonly Concept[]
}

let scratchSums = new Float32Array(0)
let scratchRows = new Uint32Array(0)
let byConcept = new Float32Array(0)

/**
 * Scores rows by BM25, each concept capped: synonyms in the same row add nothing beyond `maxScore`.
 * The arrays are overwritten by the next call.
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
    const matching = tierIndex.wordIndex.scoreRows(terms, first, end, scores)
    for (let i = 0; i < matching.length; i++) {
      const row = matching[i]!
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
