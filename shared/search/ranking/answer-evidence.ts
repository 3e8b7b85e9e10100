import { isAsking } from '#shared/search/query/asking-words.ts'
import { isImpersonalRequest, isPersonal, isProfileNote } from '#shared/search/query/task-words.ts'
import { namedSubjects } from '#shared/search/query/named-subjects.ts'
import { asksOnlyTimeOrSpeaker } from '#shared/search/ranking/question-floors.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import { innerNames } from '#shared/search/words/inner-names.ts'
import { isMarkerTerm, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'

/**
 * Fitted by logistic regression to the tuned halves of scripts/lab/bench/recall-quality.ts and of
 * `npm run bench -- harm`: answerable questions against those that were asked of another vault. Then rounded.
 * The weight of `impersonal` was lowered from 2, which had lost a fifth of short notes about a person.
 * The bias was raised by 0.3 after the held-out recall set had lost 2.9 points of evidence with the fitted one: for the
 * bias that half is not held out.
 */
const weights = {
  bias: -1.95,
  relevance: 1.8,
  /** Share of the words, of the row and of the turns around it. */
  words: 1.9,
  /** Of each unit of idf that row and question have in common. */
  shared: 0.38,
  /** The row is of a time that the question names. */
  time: 1.5,
  /** Of a similarity above `meaningScoreMin` that unrelated texts do not reach: other words, or another language. */
  meaning: 6,
  /** The question names a person or thing that no row names. */
  unknownName: -3.1,
  /** The row only gives a task, or asks about the world. */
  request: -3,
  /** The question is about the one who asks, the row tells of no person. */
  impersonal: -1.5,
}
const relevanceMax = 2
/** Similarity score of texts that nearly say the same. */
const meaningScoreMin = 0.5
const sharedMax = 25

/** Log odds of a row that answers plainly, and of one that is left out beside it. */
export const certainEvidence = 2
export const unlikelyEvidence = -2

/** How sure it is that a row answers a question, in log odds; below `unlikelyEvidence` an upper bound. */
export type AnswerEvidence = (scored: ScoredRow) => number

/**
 * Weighs the rows of a question. Each costs the terms of its text: few are to be asked for.
 *
 * @returns undefined where similarities are evidence beside the words, and for a question that names nothing
 *   but times and people
 */
export function createEvidence(query: RankingQuery): AnswerEvidence | undefined {
  const { parsedQuery, concepts, text, vector, calibration } = query
  if (!vector || asksOnlyTimeOrSpeaker(query)) return undefined
  const scoreByTerm = new Map(concepts.asked.map(({ term, weight }) => [term, weight]))
  const isUnknown = (term: string) => scoreByTerm.get(term) === 0
  const hasUnknownName =
    innerNames(text).some(name => termsOf(name).some(isUnknown)) ||
    // Of a text of many capitals, such as a short or a German one, names of several words.
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
   * Part of a row's relevance that its similarity must not add: where the model does not know every language, a
   * similarity counts no more than that of a question and its answer. Texts in an unknown language are all similar.
   */
  const excess = ({ similarity, informativeness }: ScoredRow['signals']): number =>
    certainScore >= 1 && certain !== undefined
      ? informativeness * Math.max(0, similarity - calibration.floor)
      : 0

  /** The cheapest weights first: of a row that cannot become likely the others are not looked at. */
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
    const { text, role } = range.tierIndex.memory(row)
    evidence += weights.shared * Math.min(sharedMax, sharedScore(text, scoreByTerm))
    if (evidence < unlikelyEvidence) return evidence
    if (role === 'user' && isImpersonalRequest(text)) evidence += weights.request
    if (!asksOfPerson || range.tierIndex.isFact(row)) return evidence
    const isOfPerson = role === 'user' && (isPersonal(text) || isProfileNote(text))
    if (isOfPerson) return evidence
    return evidence + (isAsking(text) ? weights.request : weights.impersonal)
  }

  return scored => {
    const evidence = known.get(scored) ?? weigh(scored)
    known.set(scored, evidence)
    return evidence
  }
}

/** Score of the terms of a question that a text, or the name before it, has as they are. */
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
