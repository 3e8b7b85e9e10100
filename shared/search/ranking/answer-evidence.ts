import { isPersonal } from '#shared/search/query/sentence-kinds.ts'
import { namedSubjects, innerNames } from '#shared/search/query/named-subjects.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/scores.ts'
import { scoreFromCosine } from '#shared/search/ranking/ranges.ts'
import { textTests } from '#shared/search/ranking/text-tests.ts'
import { isMarkerTerm, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'
import { tuned } from '#shared/search/tuned.ts'

const weights = tuned.evidence

/** Log odds that a row answers a question; below `unlikely` an upper bound of them. */
export type AnswerEvidence = (scored: ScoredRow) => number

/**
 * Creates what computes the evidence of the rows of a question. Each row costs the terms of its text: ask for few.
 *
 * @returns undefined without a vector, and for a question that names nothing but times and people
 */
export function createEvidence(query: RankingQuery): AnswerEvidence | undefined {
  const { parsedQuery, concepts, text, vector, calibration } = query
  if (!vector || query.isOpen) return undefined
  const scoreByTerm = new Map(concepts.asked.map(({ term, weight }) => [term, weight]))
  const isUnknownTerm = (term: string) => scoreByTerm.get(term) === 0
  const hasUnknownName =
    innerNames(text).some(name => termsOf(name).some(isUnknownTerm)) ||
    // In a text of many capitals, such as a short or a German one, names of several words.
    namedSubjects(text).some(name => name.length > 1 && name.some(isUnknownTerm))
  const asksOfPerson = parsedQuery.role === 'user' && isPersonal(text)
  const sharedWeightMax = weights.shared * Math.min(weights.sharedMax, concepts.maxTotal)
  const evidenceByRow = new Map<ScoredRow, number>()
  const { certain, unknownScripts = [] } = calibration
  const isUnknownScript = unknownScripts.some(code => new RegExp(`\\p{sc=${code}}`, 'u').test(text))
  const isProof = certain !== undefined && !isUnknownScript
  const unrelatedMax = isUnknownScript ? 1 : isProof ? scoreFromCosine(certain, calibration) : 0
  const certainScore = isProof ? Math.max(weights.meaningScoreMin, unrelatedMax) : Infinity

  /**
   * The part of a row's relevance that its similarity must not add. Texts in a language that the model does not know
   * are all similar: there a similarity counts no more than that of a question and its answer.
   */
  const excess = ({ similarity, informativeness }: ScoredRow['signals']): number =>
    informativeness * Math.max(0, Math.min(similarity, unrelatedMax) - calibration.floor)

  /** Adds the cheapest weights first and stops where a row cannot become likely. */
  function computeEvidence({ relevance, signals, range, row, statesAttribute }: ScoredRow): number {
    if (statesAttribute) return weights.certain
    let evidence =
      weights.bias +
      (certain === undefined ? 0 : weights.measured) +
      weights.relevance * Math.min(weights.relevanceMax, relevance - excess(signals)) +
      weights.words * Math.min(1, signals.words + signals.context) +
      weights.time * signals.time +
      (signals.similarity > certainScore
        ? weights.meaning * (signals.similarity - weights.meaningScoreMin)
        : 0) +
      (hasUnknownName ? weights.unknownName : 0)
    if (evidence + sharedWeightMax < weights.unlikely) return evidence
    const { tierIndex } = range
    evidence +=
      weights.shared * Math.min(weights.sharedMax, sharedScore(tierIndex.text(row), scoreByTerm))
    if (evidence < weights.unlikely) return evidence
    const isOfUser = tierIndex.role(row) === 'user'
    if (isOfUser && tierIndex.passes(row, textTests.isImpersonalRequest))
      evidence += weights.request
    if (!asksOfPerson || tierIndex.isFact(row)) return evidence
    if (isOfUser && tierIndex.passes(row, textTests.tellsOfPerson)) return evidence
    const asks = tierIndex.passes(row, textTests.isAsking)
    return evidence + (asks ? weights.request : weights.impersonal)
  }

  return scored => {
    const evidence = evidenceByRow.get(scored) ?? computeEvidence(scored)
    evidenceByRow.set(scored, evidence)
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
