import { hasLabel } from '#shared/search/query/attributes/attributes.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { topRows } from '#shared/search/ranking/top-rows.ts'
import { isMarkerTerm, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'

/** Rows whose text is read, the shortest of those with most words of labels first. */
const readMax = 32
/** A note with labels, even of several lines, is no longer. */
const tokensMax = 200
/** A label in upper case is what a text begins with. */
const beginningWeight = 3

let scratchSums = new Float32Array(0)

/** The user's rows of a range that are notes with one of the labels: one look-up for each of their words. */
export function findLabelledRows(
  { tierIndex, first, end, allows }: SearchRange,
  labels: ReadonlySet<string>,
): ReadonlySet<number> {
  const words = new Set(
    Array.from(labels)
      .flatMap(termsOf)
      .filter(term => !isMarkerTerm(term)),
  )
  const terms = Array.from(words).flatMap(term => [
    { term, weight: 1 },
    { term: speakerMarker + term, weight: beginningWeight },
  ])
  if (scratchSums.length < end - first) scratchSums = new Float32Array(end - first)
  scratchSums.fill(0, 0, end - first)
  const matching = tierIndex.wordIndex.scoreRows(terms, first, end, scratchSums)
  const best = topRows(scratchSums, matching, readMax).map(row => first + row)
  return new Set(best.filter(row => allows(row) && isNote(row)))

  function isNote(row: number): boolean {
    if (tierIndex.tokens(row) > tokensMax) return false
    if (tierIndex.role(row) !== 'user' && !tierIndex.isFact(row)) return false
    return hasLabel(tierIndex.memory(row).text, labels)
  }
}
