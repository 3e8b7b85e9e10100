import type { Steps } from '#shared/core/event-loop.ts'
import type { Concept, Concepts } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'

export type WordScores = {
  /** Sum over all concepts, by distance from the first row. */
  readonly totals: Float32Array
  /** Distances from the first row where `totals` is not 0, each once, in no order. */
  readonly matchingRows: Uint32Array
  /** Scores per concept, not capped by `maxScore`; row `i` of concept `c` is at `c * rowCount + i`. */
  readonly byConcept: Float32Array
  readonly rowCount: number
  readonly concepts: readonly Concept[]
  /** The score of a row with all concepts of the query. */
  readonly maxTotal: number
  /** Frees the memory of the scores for the next search; they must not be read afterwards. */
  release(): void
}

/** Memory for the scores of one search; concurrent searches have their own. */
type Scratch = { totals: Float32Array; matchingRows: Uint32Array; byConcept: Float32Array }

const createScratch = (): Scratch => ({
  totals: new Float32Array(0),
  matchingRows: new Uint32Array(0),
  byConcept: new Float32Array(0),
})

/** Memory of ended searches for the next ones: new memory would cost more than the scores. */
const spares: Scratch[] = []
const sparesMax = 3

function reserve(scratch: Scratch, rowCount: number, conceptCount: number) {
  if (scratch.totals.length < rowCount) {
    scratch.totals = new Float32Array(rowCount)
    scratch.matchingRows = new Uint32Array(rowCount)
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
  { tierIndex, first, end }: SearchRange,
  { matched: concepts, maxTotal }: Concepts,
): Steps<WordScores> {
  const rowCount = end - first
  const scratch = spares.pop() ?? createScratch()
  reserve(scratch, rowCount, concepts.length)
  const { totals, matchingRows, byConcept } = scratch
  totals.fill(0, 0, rowCount)
  let count = 0
  for (let c = 0; c < concepts.length; c++) {
    if (c > 0) yield
    const { terms, maxScore } = concepts[c]!
    const scores = byConcept.subarray(c * rowCount, (c + 1) * rowCount).fill(0)
    if (maxScore <= 0) continue
    const matching = tierIndex.wordIndex.scoreRows(terms, first, end, scores)
    for (let i = 0; i < matching.length; i++) {
      const row = matching[i]!
      const score = scores[row]!
      if (totals[row] === 0) matchingRows[count++] = row
      totals[row]! += score < maxScore ? score : maxScore
    }
  }
  return {
    totals: totals.subarray(0, rowCount),
    matchingRows: matchingRows.subarray(0, count),
    byConcept,
    rowCount,
    concepts,
    maxTotal,
    release() {
      if (spares.length < sparesMax) spares.push(scratch)
    },
  }
}
