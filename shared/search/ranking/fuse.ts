import type { ConceptWeights } from '#shared/search/query/concepts.ts'

/** What speaks for a row, each over 0 to 1 unless it says otherwise. */
export type Signals = {
  /** Calibrated similarity of meaning: the score clients see. */
  similarity: number
  /** The share of what was asked for that its own words name. */
  words: number
  /** What the turns around it lend it. */
  neighbours: number
  /** It happened when the question says. */
  time: number
  /** Said by whom the question names, or by the side it asks for. */
  name: number
  /** It holds the kind of answer asked for: a number, a date. */
  kind: number
  /** How fresh it is. */
  recency: number
  /** How much a text of its length can tell. */
  substance: number
}

export type Weights = ConceptWeights & {
  words: number
  lentWords: number
  lentSimilarity: number
  time: number
  name: number
  kind: number
  recency: number
}

/**
 * Measured on the tuned part of the evaluation (scripts/bench/recall-quality.ts), then rounded:
 * every one of them may change by a third without the result changing by a point.
 */
export const measured: Weights = {
  related: 1.2,
  slip: 0.7,
  speaker: 0.15,
  words: 0.8,
  lentWords: 0.7,
  lentSimilarity: 0.4,
  time: 1.4,
  name: 0.5,
  kind: 0.4,
  recency: 0.04,
}

/**
 * One number to rank by. Meaning and words are fused on their calibrated scales, not by rank: how
 * far a row leads says more than that it leads. What only supports an answer multiplies, so that it
 * decides between related rows and never lifts an unrelated one; a time that is named is the
 * exception, since "what happened in May" names nothing else.
 */
export function relevanceOf(signals: Signals, weights: Weights): number {
  const { similarity, words, neighbours, time, name, kind, recency, substance } = signals
  const about = similarity + weights.words * words + neighbours
  const support = (1 + weights.time * time) * (1 + weights.name * name) * (1 + weights.kind * kind)
  return substance * (about * support * (1 + weights.recency * recency) + timeAlone * time)
}

/** A row that only happened at the right time ranks below any that has to do with the question. */
const timeAlone = 0.2
