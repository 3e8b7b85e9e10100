import type { AskedTerm } from '#shared/search/query/question.ts'
import { relatedTo } from '#shared/search/words/related.ts'
import { slipsOf } from '#shared/search/words/spelling.ts'
import { isKnownWord } from '#shared/search/words/term-weights.ts'
import { saidBy } from '#shared/search/words/words.ts'
import type { WeightedTerm, WordIndex } from '#shared/search/words/word-index.ts'

/** One thing a question asks for, and all the terms a text may name it by. */
export type Concept = {
  readonly terms: readonly WeightedTerm[]
  /** What naming it once by its own word is worth; more of the same adds nothing. */
  readonly worth: number
}

export type Concepts = {
  readonly found: readonly Concept[]
  /** The worth of everything asked for, found anywhere or not. */
  readonly whole: number
  /** Marks of the speakers whom the question names. */
  readonly speakers: readonly string[]
}

export type ConceptWeights = {
  /** Words of related meaning, against the word itself. */
  related: number
  /** A word that is one slip away from one nobody has used. */
  slip: number
  /** The name of a speaker, which texts of the others mention. */
  speaker: number
}

/** A long text has many words; those that tell most are enough to find it by. */
const conceptsMax = 24
/** Related words are looked up for questions only: a long text brings its own. */
const relatedConceptsMax = 12
const relatedMax = 40
const slippedMax = 3
/**
 * Rows that hold none of the words, beside the real ones: in a vault of three memories a word that
 * one of them holds is still worth nearly as much as a word that none holds.
 */
const imaginedRows = 100
/** The worth of a word nobody has used, where a related word may stand for it. */
const absentWorth = 4

/**
 * Weighs what a question asks for against the words of the blocks searched, all of them together:
 * a word of few memories is worth more. Costs one look-up for each word, related word and block.
 */
export function conceptsOf(
  asked: readonly AskedTerm[],
  indexes: readonly WordIndex[],
  weights: ConceptWeights,
): Concepts {
  const count = indexes.reduce((sum, index) => sum + index.count, imaginedRows)
  const frequency = (term: string) => indexes.reduce((sum, index) => sum + index.frequency(term), 0)
  const rarity = (holders: number) => Math.log(1 + (count - holders + 0.5) / (holders + 0.5))

  const own = asked
    .map(({ term, weight }) => {
      const holders = frequency(term)
      return { term, weight, holders, worth: weight * rarity(holders) }
    })
    .sort((a, b) => b.worth - a.worth)
    .slice(0, conceptsMax)
  const names = new Set(own.map(({ term }) => term))
  const speakers: string[] = []
  const found: Concept[] = []
  let whole = 0
  let slipped = 0

  for (const { term, weight, holders, worth } of own) {
    const speaks = frequency(saidBy + term) > 0
    if (speaks) speakers.push(saidBy + term)
    const factor = speaks ? weights.speaker : 1
    const terms: WeightedTerm[] = holders > 0 ? [{ term, weight: worth * factor }] : []

    if (holders === 0 && !speaks && slipped < slippedMax && !isKnownWord(term)) {
      slipped++
      for (const slip of slipsOf(term)) {
        const near = frequency(slip)
        if (near > 0) terms.push({ term: slip, weight: weight * weights.slip * rarity(near) })
      }
    }
    if (own.length <= relatedConceptsMax && !speaks) {
      for (const related of relatedTo(term).slice(0, relatedMax)) {
        const near = names.has(related.term) ? 0 : frequency(related.term)
        if (near === 0) continue
        const rare = Math.min(rarity(near), holders > 0 ? rarity(holders) : absentWorth + 1)
        terms.push({ term: related.term, weight: weight * weights.related * related.weight * rare })
      }
    }
    const most = factor * (holders > 0 || terms.length === 0 ? worth : weight * absentWorth)
    whole += most
    if (terms.length > 0) found.push({ terms, worth: most })
  }
  return { found, whole, speakers }
}
