import type { Concept } from '#shared/search/query/concepts.ts'
import type { Place } from '#shared/search/ranking/source-position.ts'

/** What each row of a place is worth by its words. */
export type WordTable = {
  /** By distance from the place's first row, over all concepts. */
  readonly sums: Float32Array
  /** Where they are not 0: distances from the first row, each once, in no order. */
  readonly holders: Uint32Array
  /** The scores of each concept, not yet capped by its worth: row `i` of concept `c` is at `c * rows + i`. */
  readonly byConcept: Float32Array
  readonly rows: number
  readonly concepts: readonly Concept[]
}

let sums = new Float32Array(0)
let holders = new Uint32Array(0)
let byConcept = new Float32Array(0)

/**
 * Naming a concept once is all it takes: synonyms in the same row add nothing. The arrays are
 * overwritten by the next call.
 */
export function wordTableOf({ block, first, end }: Place, concepts: readonly Concept[]): WordTable {
  const rows = end - first
  if (sums.length < rows) {
    sums = new Float32Array(rows)
    holders = new Uint32Array(rows)
  }
  if (byConcept.length < rows * concepts.length) {
    byConcept = new Float32Array(rows * concepts.length)
  }
  sums.fill(0, 0, rows)
  byConcept.fill(0, 0, rows * concepts.length)
  let count = 0
  for (let c = 0; c < concepts.length; c++) {
    const { terms, worth } = concepts[c]!
    if (worth <= 0) continue
    const scores = byConcept.subarray(c * rows, (c + 1) * rows)
    const named = block.words.scores(terms, first, end, scores)
    for (let i = 0; i < named.length; i++) {
      const row = named[i]!
      const score = scores[row]!
      if (sums[row] === 0) holders[count++] = row
      sums[row]! += score < worth ? score : worth
    }
  }
  return {
    sums: sums.subarray(0, rows),
    holders: holders.subarray(0, count),
    byConcept,
    rows,
    concepts,
  }
}
