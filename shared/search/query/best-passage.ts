import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { relatedTerms } from '#shared/search/words/related-terms.ts'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'
import { termWeight } from '#shared/search/words/term-weights.ts'

/** A part of a text, as character positions. */
export type Passage = { from: number; to: number }

/** Characters of a passage: about 120 tokens of running text. */
const passageCharacters = 480
/** The same for scripts whose characters are words or syllables. */
const densePassageCharacters = 160

/**
 * Finds the sentences of a text that best fit a question, in one piece; of equal ones the first. Undefined when the text
 * is hardly longer than a passage.
 *
 * @param share of the usual length of a passage
 */
export function bestPassage(text: string, question: string, share = 1): Passage | undefined {
  const isDense = /[\u2e80-\uffff]/.test(text.slice(0, 200))
  const lengthMax = share * (isDense ? densePassageCharacters : passageCharacters)
  if (text.length <= lengthMax * 1.3) return undefined
  const sentences = locateSentences(text)
  const weights = questionWeights(question)
  const scores = sentences.map(({ from, to }) => scoreSentence(text.slice(from, to), weights))
  let best: Passage = { from: 0, to: Math.min(text.length, lengthMax) }
  let bestScore = -1
  for (let first = 0; first < sentences.length; first++) {
    let score = 0
    const { from } = sentences[first]!
    for (let last = first; last < sentences.length; last++) {
      const { to } = sentences[last]!
      if (last > first && to - from > lengthMax) break
      score += scores[last]!
      // The longer passage with the same beginning wins.
      if (score > bestScore || (score === bestScore && best.from === from)) {
        bestScore = score
        best = { from, to }
      }
    }
  }
  return best
}

/** Returns the places of the sentences of a text. */
function locateSentences(text: string): Passage[] {
  const places: Passage[] = []
  let at = 0
  for (const sentence of splitSentences(text)) {
    const from = text.indexOf(sentence, at)
    if (from < 0) continue
    at = from + sentence.length
    places.push({ from, to: at })
  }
  return places
}

/** Returns the weights of the terms of a question and of their synonyms, which weigh less. */
function questionWeights(question: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const term of new Set(termsOf(question))) {
    if (isMarkerTerm(term)) continue
    const weight = termWeight(term)
    weights.set(term, weight)
    for (const related of relatedTerms(term)) {
      const relatedWeight = 0.6 * related.weight * weight
      if (relatedWeight > (weights.get(related.term) ?? 0)) weights.set(related.term, relatedWeight)
    }
  }
  return weights
}

function scoreSentence(sentence: string, weights: ReadonlyMap<string, number>): number {
  let score = 0
  for (const term of new Set(termsOf(sentence))) score += weights.get(term) ?? 0
  return score
}
