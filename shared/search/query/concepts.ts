import type { QueryTerm } from '#shared/search/query/parse-query.ts'
import { relatedTerms, type RelatedTerm } from '#shared/search/words/related-terms.ts'
import { isCommonWord } from '#shared/search/words/term-weights.ts'
import { speakerMarker } from '#shared/search/words/index-terms.ts'
import type { ReadonlyWordIndex, WeightedTerm } from '#shared/search/words/word-index.ts'
import { tuned } from '#shared/search/tuned.ts'

/** A term of the query with its spelling variants and related terms. */
export type Concept = {
  readonly terms: readonly WeightedTerm[]
  /** Score of one occurrence of the term itself, and cap of the concept's score. */
  readonly maxScore: number
}

export type Concepts = {
  readonly matched: readonly Concept[]
  /** Sum of `maxScore` over all concepts, matched anywhere or not. */
  readonly maxTotal: number
  /** Marker terms of the speakers that the query names. */
  readonly speakerMarkers: readonly string[]
  /** The terms of the query, each with the score of its concept; 0 for a term of no row. */
  readonly asked: readonly WeightedTerm[]
}

/** Most terms of a query; of a long text those with the highest scores. */
const conceptsMax = 24
/**
 * Most terms of a sentence that does not ask, and most rows, or share of rows, with one of them. What many rows have
 * costs most and distinguishes least.
 */
const fewConceptsMax = 4
const fewRowsMax = 20
const fewRowsShare = 1 / 50
/** Most concepts of a query with related terms: a long text contains its own. */
const relatedConceptsMax = 12
const relatedMax = 40
const correctedTermsMax = 3
const { smoothingRows, headingRowsMax, unknownTermScore } = tuned.terms

/** Statistics over several indexes. */
type TermStatistics = {
  /** Returns the number of rows with a term. */
  frequency: (term: string) => number
  /** Rows, and `smoothingRows`. */
  count: number
  /** Returns the idf of a term with so many rows. */
  idf: (rowsWithTerm: number) => number
}

/**
 * Turns query terms into concepts with weights by idf over all indexes. Costs one look-up for each term, related term and
 * index.
 *
 * @param few take the rarest terms only, without related terms and spellings
 */
export function buildConcepts(
  queryTerms: readonly QueryTerm[],
  indexes: readonly ReadonlyWordIndex[],
  weights: {
    /** Weight of related terms, relative to the term itself. */
    related: number
    /** Weight of a spelling variant of a term that is in no text. */
    misspelling: number
    /** Weight of a speaker's name as a term. */
    speaker: number
  },
  { few = false }: { few?: boolean } = {},
): Concepts {
  const statistics = termStatistics(indexes)
  const { frequency, idf, count } = statistics
  const fewRows = Math.max(fewRowsMax, count * fewRowsShare)
  const scoredTerms = queryTerms
    .map(({ term, weight }) => {
      const rowsOfSpeaker = frequency(speakerMarker + term)
      // "Payroll: ..." begins as the turn of a speaker does. A name before few rows is a heading: its marker counts as
      // its word.
      const isHeading = rowsOfSpeaker > 0 && rowsOfSpeaker <= headingRowsMax
      const rowsWithTerm = frequency(term) + (isHeading ? rowsOfSpeaker : 0)
      return { term, weight, rowsWithTerm, isHeading, score: weight * idf(rowsWithTerm) }
    })
    .filter(({ rowsWithTerm }) => !few || rowsWithTerm <= fewRows)
    .sort((a, b) => b.score - a.score)
    .slice(0, few ? fewConceptsMax : conceptsMax)
  const ownTerms = new Set(scoredTerms.map(({ term }) => term))
  const speakerMarkers: string[] = []
  const matched: Concept[] = []
  const asked: WeightedTerm[] = []
  let maxTotal = 0
  let correctedCount = 0

  for (const { term, weight, rowsWithTerm, isHeading, score } of scoredTerms) {
    const isSpeaker = frequency(speakerMarker + term) > 0
    if (isSpeaker) speakerMarkers.push(speakerMarker + term)
    const factor = isSpeaker && !isHeading ? weights.speaker : 1
    const isUnknown = rowsWithTerm === 0
    const own = isHeading ? [term, speakerMarker + term] : [term]
    const terms = isUnknown ? [] : own.map(each => ({ term: each, weight: score * factor }))

    const isMisspelt = isUnknown && !isSpeaker && !isCommonWord(term)
    if (isMisspelt && !few && correctedCount < correctedTermsMax) {
      correctedCount++
      terms.push(...weightedVariants(term, weight * weights.misspelling, statistics))
    }
    if (scoredTerms.length <= relatedConceptsMax && !isSpeaker && !few) {
      const idfMax = isUnknown ? unknownTermScore + 1 : idf(rowsWithTerm)
      const others = relatedTerms(term)
        .slice(0, relatedMax)
        .filter(related => !ownTerms.has(related.term))
      terms.push(...weightedRelated(others, weight * weights.related, idfMax, statistics))
    }
    const maxScore = factor * (!isUnknown || terms.length === 0 ? score : weight * unknownTermScore)
    maxTotal += maxScore
    asked.push({ term, weight: isUnknown && !isSpeaker ? 0 : maxScore })
    if (terms.length > 0) matched.push({ terms, maxScore })
  }
  return { matched, maxTotal, speakerMarkers, asked }
}

function termStatistics(indexes: readonly ReadonlyWordIndex[]): TermStatistics {
  const count = indexes.reduce((sum, index) => sum + index.count, smoothingRows)
  return {
    count,
    frequency: term => indexes.reduce((sum, index) => sum + index.documentFrequency(term), 0),
    idf: rowsWithTerm => Math.log(1 + (count - rowsWithTerm + 0.5) / (rowsWithTerm + 0.5)),
  }
}

/** Returns the spelling variants of a term that are in some text. */
function weightedVariants(
  term: string,
  weight: number,
  { frequency, idf }: TermStatistics,
): WeightedTerm[] {
  const terms: WeightedTerm[] = []
  for (const variant of spellingVariants(term)) {
    const rowsWithVariant = frequency(variant)
    if (rowsWithVariant > 0) terms.push({ term: variant, weight: weight * idf(rowsWithVariant) })
  }
  return terms
}

/** Returns the related terms that are in some text; their idf counts up to `idfMax`. */
function weightedRelated(
  candidates: readonly RelatedTerm[],
  weight: number,
  idfMax: number,
  { frequency, idf }: TermStatistics,
): WeightedTerm[] {
  const terms: WeightedTerm[] = []
  for (const related of candidates) {
    const rowsWithRelated = frequency(related.term)
    if (rowsWithRelated === 0) continue
    const cappedIdf = Math.min(idf(rowsWithRelated), idfMax)
    terms.push({ term: related.term, weight: weight * related.weight * cappedIdf })
  }
  return terms
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz'

/**
 * Returns the words at a Damerau-Levenshtein distance of 1 from a word of letters a to z: one inserted, deleted or
 * replaced, or two swapped. About 54 per letter; none for words under five letters, whose variants are mostly other words.
 */
function spellingVariants(word: string): Set<string> {
  const variants = new Set<string>()
  if (!/^[a-z]{5,20}$/.test(word)) return variants
  for (let i = 0; i <= word.length; i++) {
    const [head, tail] = [word.slice(0, i), word.slice(i)]
    for (const letter of alphabet) {
      variants.add(head + letter + tail)
      if (tail !== '') variants.add(head + letter + tail.slice(1))
    }
    if (tail !== '') variants.add(head + tail.slice(1))
    if (tail.length > 1) variants.add(head + tail[1] + tail[0] + tail.slice(2))
  }
  variants.delete(word)
  return variants
}
