import type { Concept } from '#shared/recall/concepts.ts'
import type { Place } from '#shared/recall/place.ts'

/** What each row of a place is worth by its words. */
export type WordTable = {
  /** For each row from the place's first, over all concepts. */
  readonly sums: Float32Array
  /** The scores of each concept, not yet capped by its worth: row `i` of concept `c` is at `c * rows + i`. */
  readonly byConcept: Float32Array
  readonly rows: number
  readonly concepts: readonly Concept[]
}

let sums = new Float32Array(0)
let byConcept = new Float32Array(0)

/**
 * Naming a concept once is all it takes: synonyms in the same row add nothing. The arrays are
 * overwritten by the next call. Copying scores costs a tenth of asking an index for them again.
 */
export function wordTableOf({ block, first, end }: Place, concepts: readonly Concept[]): WordTable {
  const rows = end - first
  if (sums.length < rows) sums = new Float32Array(rows)
  if (byConcept.length < rows * concepts.length) {
    byConcept = new Float32Array(rows * concepts.length)
  }
  sums.fill(0, 0, rows)
  for (let c = 0; c < concepts.length; c++) {
    const { terms, worth } = concepts[c]!
    const scores = block.words.scores(terms, first, end)
    byConcept.set(scores, c * rows)
    for (let i = 0; i < rows; i++) {
      const score = scores[i]!
      if (score !== 0) sums[i]! += score < worth ? score : worth
    }
  }
  return { sums: sums.subarray(0, rows), byConcept, rows, concepts }
}
