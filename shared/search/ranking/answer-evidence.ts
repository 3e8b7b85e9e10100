import { isPersonal } from '#shared/search/query/sentence-kinds.ts'
import { namedSubjects, innerNames } from '#shared/search/query/named-subjects.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/scores.ts'
import { scoreFromCosine } from '#shared/search/ranking/ranges.ts'
import { textTests } from '#shared/search/ranking/text-tests.ts'
import { isMarkerTerm, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'

/**
 * Fitted by logistic regression to the tuned halves of `npm run bench -- recall` and of
 * `npm run bench -- harm`: answerable questions against those that were asked of another vault. Then rounded.
 * The weight of `impersonal` was lowered from 2, which had lost a fifth of short notes about a person.
 * The bias was raised by 0.3 after the held-out recall set had lost 2.9 points of evidence with the fitted one: for the
 * bias that half is not held out.
 */
const weights = {
  bias: -1.95,
  relevance: 1.8,
  /** For the share of the words that the row and the turns around it have. */
  words: 1.9,
  /** For each unit of idf in common. */
  shared: 0.38,
  /** The row is of a time that the question names. */
  time: 1.5,
  /** For a similarity above `meaningScoreMin` that unrelated texts do not reach: other words or another language. */
  meaning: 6,
  /** The question names a person or thing that no row names. */
  unknownName: -3.1,
  /** The row only gives a task, or asks about the world. */
  request: -3,
  /** The question is about the person who asks, the row about no person. */
  impersonal: -1.5,
}
const relevanceMax = 2
/** Similarity score of texts of nearly the same meaning. */
const meaningScoreMin = 0.5
const sharedMax = 25

/** Log odds from which a row answers plainly, and below which another row is then left out. */
export const certainEvidence = 2
export const unlikelyEvidence = -2

/** Log odds that a row answers a question; below `unlikelyEvidence` an upper bound of them. */
export type AnswerEvidence = (scored: ScoredRow) => number

/**
 * Creates the weighing of the rows of a question. Each row costs the terms of its text: weigh few.
 *
 * @returns undefined without a vector, and for a question that names nothing but times and people
 */
export function createEvidence(query: RankingQuery): AnswerEvidence | undefined {
  const { parsedQuery, concepts, text, vector, calibration } = query
  if (!vector || query.isOpen) return undefined
  const scoreByTerm = new Map(concepts.asked.map(({ term, weight }) => [term, weight]))
  const isUnknown = (term: string) => scoreByTerm.get(term) === 0
  const hasUnknownName =
    innerNames(text).some(name => termsOf(name).some(isUnknown)) ||
    // In a text of many capitals, such as a short or a German one, names of several words.
    namedSubjects(text).some(name => name.length > 1 && name.some(isUnknown))
  const asksOfPerson = parsedQuery.role === 'user' && isPersonal(text)
  const sharedWeightMax = weights.shared * Math.min(sharedMax, concepts.maxTotal)
  const known = new Map<ScoredRow, number>()
  const { certain } = calibration
  const certainScore = Math.max(
    meaningScoreMin,
    certain === undefined ? Infinity : scoreFromCosine(certain, calibration),
  )

  /**
   * The part of a row's relevance that its similarity must not add. Texts in a language that the model does not know
   * are all similar: there a similarity counts no more than that of a question and its answer.
   */
  const excess = ({ similarity, informativeness }: ScoredRow['signals']): number =>
    certainScore >= 1 && certain !== undefined
      ? informativeness * Math.max(0, similarity - calibration.floor)
      : 0

  /** Adds the cheapest weights first and stops where a row cannot become likely. */
  function weigh({ relevance, signals, range, row, statesAttribute }: ScoredRow): number {
    if (statesAttribute) return certainEvidence
    let evidence =
      weights.bias +
      weights.relevance * Math.min(relevanceMax, relevance - excess(signals)) +
      weights.words * Math.min(1, signals.words + signals.context) +
      weights.time * signals.time +
      (signals.similarity > certainScore
        ? weights.meaning * (signals.similarity - meaningScoreMin)
        : 0) +
      (hasUnknownName ? weights.unknownName : 0)
    if (evidence + sharedWeightMax < unlikelyEvidence) return evidence
    const { tierIndex } = range
    evidence += weights.shared * Math.min(sharedMax, sharedScore(tierIndex.text(row), scoreByTerm))
    if (evidence < unlikelyEvidence) return evidence
    const isOfUser = tierIndex.role(row) === 'user'
    if (isOfUser && tierIndex.passes(row, textTests.isImpersonalRequest))
      evidence += weights.request
    if (!asksOfPerson || tierIndex.isFact(row)) return evidence
    if (isOfUser && tierIndex.passes(row, textTests.tellsOfPerson)) return evidence
    const asks = tierIndex.passes(row, textTests.isAsking)
    return evidence + (asks ? weights.request : weights.impersonal)
  }

  return scored => {
    const evidence = known.get(scored) ?? weigh(scored)
    known.set(scored, evidence)
    return evidence
  }
}

/** Sums the scores of the terms of a question that a text, or the name before it, has. */
function sharedScore(text: string, scoreByTerm: ReadonlyMap<string, number>): number {
  const terms = new Set<string>()
  for (const term of termsOf(text)) {
    if (term.startsWith(speakerMarker)) terms.add(term.slice(speakerMarker.length))
    else if (!isMarkerTerm(term)) terms.add(term)
  }
  let sum = 0
  for (const [term, score] of scoreByTerm) if (terms.has(term)) sum += score
  return sum
}
