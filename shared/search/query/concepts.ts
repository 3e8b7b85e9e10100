import type { QueryTerm } from '#shared/search/query/parse-query.ts'
import { relatedTerms } from '#shared/search/words/related-terms.ts'
import { spellingVariants } from '#shared/search/words/spelling-variants.ts'
import { isCommonWord } from '#shared/search/words/term-weights.ts'
import { speakerMarker } from '#shared/search/words/index-terms.ts'
import type { WeightedTerm, WordIndex } from '#shared/search/words/word-index.ts'

/** One thing a question asks for, and all the terms a text may name it by. */
export type Concept = {
  readonly terms: readonly WeightedTerm[]
  /** What naming it once by its own word is worth; more of the same adds nothing. */
  readonly maxScore: number
}

export type Concepts = {
  readonly matched: readonly Concept[]
  /** The worth of everything asked for, found anywhere or not. */
  readonly maxTotal: number
  /** Marks of the speakers whom the question names. */
  readonly speakerMarkers: readonly string[]
}

export type ConceptWeights = {
  /** Words of related meaning, against the word itself. */
  related: number
  /** A word that is one slip away from one nobody has used. */
  misspelling: number
  /** The name of a speaker, which texts of the others mention. */
  speaker: number
}

/** A long text has many words; those that tell most are enough to find it by. */
const conceptsMax = 24
/** Related words are looked up for questions only: a long text brings its own. */
const relatedConceptsMax = 12
const relatedMax = 40
const correctedTermsMax = 3
/**
 * Rows that hold none of the words, beside the real ones: in a vault of three memories a word that
 * one of them holds is still worth nearly as much as a word that none holds.
 */
const smoothingRows = 100
/** The worth of a word nobody has used, where a related word may stand for it. */
const unknownTermScore = 4

/**
 * Weighs what a question asks for against the words of the blocks searched, all of them together:
 * a word of few memories is worth more. Costs one look-up for each word, related word and block.
 */
export function buildConcepts(
  queryTerms: readonly QueryTerm[],
  indexes: readonly WordIndex[],
  weights: ConceptWeights,
): Concepts {
  const count = indexes.reduce((sum, index) => sum + index.count, smoothingRows)
  const frequency = (term: string) =>
    indexes.reduce((sum, index) => sum + index.documentFrequency(term), 0)
  const rarity = (rowsWithTerm: number) =>
    Math.log(1 + (count - rowsWithTerm + 0.5) / (rowsWithTerm + 0.5))

  const weighted = queryTerms
    .map(({ term, weight }) => {
      const rowsWithTerm = frequency(term)
      return { term, weight, holders: rowsWithTerm, worth: weight * rarity(rowsWithTerm) }
    })
    .sort((a, b) => b.worth - a.worth)
    .slice(0, conceptsMax)
  const ownTerms = new Set(weighted.map(({ term }) => term))
  const speakerMarkers: string[] = []
  const matched: Concept[] = []
  let maxTotal = 0
  let correctedCount = 0

  for (const { term, weight, holders: rowsWithTerm, worth } of weighted) {
    const isSpeaker = frequency(speakerMarker + term) > 0
    if (isSpeaker) speakerMarkers.push(speakerMarker + term)
    const factor = isSpeaker ? weights.speaker : 1
    const terms: WeightedTerm[] = rowsWithTerm > 0 ? [{ term, weight: worth * factor }] : []

    if (
      rowsWithTerm === 0 &&
      !isSpeaker &&
      correctedCount < correctedTermsMax &&
      !isCommonWord(term)
    ) {
      correctedCount++
      for (const variant of spellingVariants(term)) {
        const rowsWithVariant = frequency(variant)
        if (rowsWithVariant > 0)
          terms.push({
            term: variant,
            weight: weight * weights.misspelling * rarity(rowsWithVariant),
          })
      }
    }
    if (weighted.length <= relatedConceptsMax && !isSpeaker) {
      for (const related of relatedTerms(term).slice(0, relatedMax)) {
        const rowsWithVariant = ownTerms.has(related.term) ? 0 : frequency(related.term)
        if (rowsWithVariant === 0) continue
        const rare = Math.min(
          rarity(rowsWithVariant),
          rowsWithTerm > 0 ? rarity(rowsWithTerm) : unknownTermScore + 1,
        )
        terms.push({ term: related.term, weight: weight * weights.related * related.weight * rare })
      }
    }
    const maxScore =
      factor * (rowsWithTerm > 0 || terms.length === 0 ? worth : weight * unknownTermScore)
    maxTotal += maxScore
    if (terms.length > 0) matched.push({ terms, maxScore })
  }
  return { matched, maxTotal, speakerMarkers }
}
