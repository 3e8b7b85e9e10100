import type { Steps } from '#shared/core/event-loop.ts'
import { findStatements, statementCues } from '#shared/search/profile/find-statements.ts'
import { hasLabel } from '#shared/search/query/attributes/attributes.ts'
import type { QueryTerm } from '#shared/search/query/parse-query.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { topRows } from '#shared/search/ranking/top-rows.ts'
import { isMarkerTerm, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'

/** Rows whose text is read: those with most of the words of labels, and of sentences. */
const notesReadMax = 32
const sentencesReadMax = 64
/** Of which so many in one step. */
const readStep = 16
/** A note with labels, even of several lines, is no longer. */
const tokensMax = 200
/** A label in upper case is what a text begins with. */
const beginningWeight = 3

let scratchSums = new Float32Array(0)

/**
 * The user's rows of a range that state an attribute, as a note with one of its labels ("Name: Ada") or as a
 * sentence ("Je m'appelle Ada"): a look-up for the words of each. In short steps, the rows must not change
 * before the last.
 *
 * @param labels of the attribute in all languages
 */
export function* findAttributeRows(
  range: SearchRange,
  labels: ReadonlySet<string>,
): Steps<ReadonlySet<number>> {
  const { tierIndex, allows } = range
  const notes = rowsWithTerms(range, labelTerms(labels), notesReadMax)
  yield
  const rows = new Set([...notes, ...rowsWithTerms(range, sentenceTerms(labels), sentencesReadMax)])
  const found = new Set<number>()
  let count = 0
  for (const row of rows) {
    if (count++ % readStep === 0) yield
    if (allows(row) && statesAttribute(row)) found.add(row)
  }
  return found

  function statesAttribute(row: number): boolean {
    if (tierIndex.tokens(row) > tokensMax) return false
    const isOfUser = tierIndex.role(row) === 'user'
    if (!isOfUser && !tierIndex.isFact(row)) return false
    const { text } = tierIndex.memory(row)
    return hasLabel(text, labels) || (isOfUser && hasStatement(text, labels))
  }
}

/**
 * The rows with most of the words, short ones first: in a large vault many have a word such as "name", and
 * those in which people introduce themselves are short.
 */
function rowsWithTerms(
  { tierIndex, first, end }: SearchRange,
  terms: readonly QueryTerm[],
  count: number,
): number[] {
  if (scratchSums.length < end - first) scratchSums = new Float32Array(end - first)
  const sums = scratchSums.fill(0, 0, end - first)
  const matching = tierIndex.wordIndex.scoreRows(terms, first, end, sums)
  for (const row of matching) sums[row]! /= Math.sqrt(1 + tierIndex.tokens(first + row))
  return topRows(sums, matching, count).map(row => first + row)
}

const wordsOf = (texts: Iterable<string>): string[] =>
  [...new Set(Array.from(texts).flatMap(termsOf))].filter(term => !isMarkerTerm(term))

const labelTerms = (labels: ReadonlySet<string>): QueryTerm[] =>
  wordsOf(labels).flatMap(term => [
    { term, weight: 1 },
    { term: speakerMarker + term, weight: beginningWeight },
  ])

const sentenceTerms = (subjects: ReadonlySet<string>): QueryTerm[] =>
  wordsOf(statementCues(subjects)).map(term => ({ term, weight: 1 }))

const hasStatement = (text: string, subjects: ReadonlySet<string>): boolean =>
  findStatements(text).some(({ facts }) => facts.some(({ subject }) => subjects.has(subject)))
