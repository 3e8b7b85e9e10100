import type { ConceptWeights } from '#shared/search/query/concepts.ts'

/** The ranking signals of a row, each from 0 to 1. */
export type Signals = {
  /** Calibrated cosine: the score in responses. */
  similarity: number
  /** Weighted share of the query's concepts in its text. */
  words: number
  /** Words and similarity of the turns around it; may exceed 1. */
  context: number
  /** 1 within a time that the query names. */
  time: number
  /** Of a speaker that the query names, or of the role it asks for. */
  speakerMatch: number
  /** Contains the type of answer asked for: a number, a date. */
  answerType: number
  recency: number
  /** Up to 1 for a turn of the user that only asks, the more it repeats the query: it carries no answer. */
  question: number
  /** By length in tokens: little of a few words, and less the longer a long text is. */
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
  /** How much less a question of the user is worth than a statement. */
  question: number
  /** How much less a long text is worth: the power of its length over that of a usual one. */
  longText: number
}

/**
 * Measured on the tuned split of the evaluation (scripts/lab/bench/recall-quality.ts), then rounded: each
 * may change by a third with less than a point of difference in the results.
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
  question: 0.5,
  longText: 0.5,
}

/**
 * Fuses the signals into one relevance. Vector and words are added on their calibrated scales, not
 * by rank, so that margins count. Supporting signals multiply: they decide between related rows and
 * never lift an unrelated one. A time that the query names is the exception, since "what happened in
 * May" names nothing else.
 */
export function fuseSignals(signals: Signals, weights: RankingWeights): number {
  const { similarity, words, context, time, speakerMatch, answerType, recency, informativeness } =
    signals
  const carried = 1 - weights.question * signals.question
  const related = similarity + weights.words * words + context
  const support =
    (1 + weights.time * time) *
    (1 + weights.speakerMatch * speakerMatch) *
    (1 + weights.answerType * answerType)
  return (
    informativeness *
    carried *
    (related * support * (1 + weights.recency * recency) + timeOnlyWeight * time)
  )
}

/** Relevance of a row that matches by time only: below rows that match otherwise. */
const timeOnlyWeight = 0.2
