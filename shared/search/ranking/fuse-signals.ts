import type { ConceptWeights } from '#shared/search/query/concepts.ts'

/** What speaks for a row, each over 0 to 1 unless it says otherwise. */
export type Signals = {
  /** Calibrated similarity of meaning: the score clients see. */
  similarity: number
  /** The share of what was asked for that its own words name. */
  words: number
  /** What the turns around it lend it. */
  context: number
  /** It happened when the question says. */
  time: number
  /** Said by whom the question names, or by the side it asks for. */
  speakerMatch: number
  /** It holds the kind of answer asked for: a number, a date. */
  answerType: number
  /** How fresh it is. */
  recency: number
  /** How much a text of its length can tell. */
  informativeness: number
}

export type RankingWeights = ConceptWeights & {
  words: number
  contextWords: number
  contextSimilarity: number
  time: number
  speakerMatch: number
  answerType: number
  recency: number
}

/**
 * Measured on the tuned part of the evaluation (scripts/bench/recall-quality.ts), then rounded:
 * every one of them may change by a third without the result changing by a point.
 */
export const defaultWeights: RankingWeights = {
  related: 1.2,
  misspelling: 0.7,
  speaker: 0.15,
  words: 0.8,
  contextWords: 0.7,
  contextSimilarity: 0.4,
  time: 1.4,
  speakerMatch: 0.5,
  answerType: 0.4,
  recency: 0.04,
}

/**
 * One number to rank by. Meaning and words are fused on their calibrated scales, not by rank: how
 * far a row leads says more than that it leads. What only supports an answer multiplies, so that it
 * decides between related rows and never lifts an unrelated one; a time that is named is the
 * exception, since "what happened in May" names nothing else.
 */
export function fuseSignals(signals: Signals, weights: RankingWeights): number {
  const { similarity, words, context, time, speakerMatch, answerType, recency, informativeness } =
    signals
  const about = similarity + weights.words * words + context
  const support =
    (1 + weights.time * time) *
    (1 + weights.speakerMatch * speakerMatch) *
    (1 + weights.answerType * answerType)
  return (
    informativeness * (about * support * (1 + weights.recency * recency) + timeOnlyWeight * time)
  )
}

/** A row that only happened at the right time ranks below any that has to do with the question. */
const timeOnlyWeight = 0.2
