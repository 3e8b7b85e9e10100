import type { RankingQuery, ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import type { AnswerEvidence } from '#shared/search/ranking/answer-evidence.ts'
import { isFollowedByTurn } from '#shared/search/ranking/adjacent-turns.ts'
import { isImpersonalRequest, isPersonal } from '#shared/search/query/task-words.ts'
import { asksOnlyTimeOrSpeaker, questionFloor } from '#shared/search/ranking/question-floors.ts'
import type { NamedSubject } from '#shared/search/query/named-subjects.ts'
import { parseSpeakerPrefix, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'

/** Words and context signals of a row that is relevant by them alone. */
const wordRelevanceFloor = 0.35
/**
 * Score of all words of a question (weight times idf) below which they are too common to be about
 * anything: "can you help me" has 2, "how do I get to work" 3, most questions more than 10.
 */
const substantialScore = 3
/** Floor of a question that is asked of rows whose evidence is weighed too. */
const wordedFloor = 0.55
/** Rows, the best first, of which one must be likely to answer. */
const weighedMax = 6
/** Beside a relevant row, others need this share of the floor and of the best row's strength. */
const companionFloor = 0.35
const companionShare = 0.15

type RelevanceOptions = {
  floor?: number
  evidenceOf?: AnswerEvidence | undefined
  isNamed?: ((row: ScoredRow) => boolean) | undefined
}

/** Rows, the best first, that are read for a name. */
const namedRowsMax = 48

/** Whether a row has all terms of one of the names; reads its text. */
export function rowsThatName(names: readonly NamedSubject[]): (row: ScoredRow) => boolean {
  return ({ range, row }) => {
    const terms = new Set(termsOf(range.tierIndex.memory(row).text))
    return names.some(name =>
      name.every(term => terms.has(term) || terms.has(speakerMarker + term)),
    )
  }
}

/**
 * Empty unless some row is relevant by itself; then all rows that are not much weaker than the best,
 * since most answers spread over several turns. A row without a match of its own is included only as
 * the reply to a row that is relevant without context.
 *
 * @param evidenceOf for embedders whose similarities are made of words: a reason must also be likely to answer
 * @param isNamed whether a row has the name that is asked of: then rows with it are relevant, whatever else is said
 */
export function filterRelevant(
  ranked: readonly ScoredRow[],
  rankingQuery: RankingQuery,
  { floor = 1, evidenceOf, isNamed }: RelevanceOptions = {},
): ScoredRow[] {
  const strengths = ranked.map(scored => relevanceStrength(scored, rankingQuery))
  const best = Math.max(0, ...strengths)
  const reasonFloor = evidenceOf && floor <= questionFloor ? wordedFloor : floor
  const isReason = (scored: ScoredRow, i: number): boolean => {
    if (scored.statesAttribute) return strengths[i]! >= reasonFloor
    const strength = strengths[i]! * (evidenceOf ? 1 : wordTrust(scored))
    if (strength < reasonFloor || strength * requestTrust(scored) < reasonFloor) return false
    return !evidenceOf || (i < weighedMax && evidenceOf(scored) >= 0)
  }
  if (!ranked.some(isReason)) return isNamed ? ranked.slice(0, namedRowsMax).filter(isNamed) : []
  const strengthMin = Math.max(companionFloor, best * companionShare)
  const ownStrengths = ranked.map(scored =>
    relevanceStrength(scored, rankingQuery, { withContext: false }),
  )
  const relevantRows = Map.groupBy(
    ranked.filter((_, i) => ownStrengths[i]! >= floor),
    ({ range }) => range,
  )
  const isReply = ({ range, row }: ScoredRow) =>
    row > range.first &&
    isFollowedByTurn(range.tierIndex, row - 1) &&
    relevantRows.get(range)?.some(relevantRow => relevantRow.row === row - 1)
  return ranked.filter((scored, i) => {
    if (strengths[i]! < strengthMin) return false
    const own = ownStrengths[i]!
    if (!isAnswer(scored)) return own > 0 || isReply(scored)
    // An answer repeats much of what was said before it; it is needed where that only asked.
    return own >= companionFloor || (isReply(scored) && isAfterQuestion(scored))
  })
}

/**
 * Words of a row that is not similar at all are homonyms, or are said in passing: such a row must have
 * nearly all words of the question to be the reason for telling anything.
 */
const wordTrust = ({ signals: { similarity, time } }: ScoredRow): number =>
  time > 0 ? 1 : wordTrustMin + (1 - wordTrustMin) * Math.min(1, similarity / trustedSimilarity)
const wordTrustMin = 0.55
const trustedSimilarity = 0.2

/**
 * A question about the world, or a task, tells nothing of the person who sent it, however well its words
 * fit; what named people ask each other is part of what happened.
 */
const requestTrust = ({ range: { tierIndex }, row }: ScoredRow): number => {
  if (tierIndex.role(row) !== 'user' || tierIndex.tokens(row) > requestTokensMax) return 1
  const { text, speaker } = tierIndex.memory(row)
  if (speaker !== undefined || parseSpeakerPrefix(text)) return 1
  const isRequest = isImpersonalRequest(text) || (endsWithQuestion(text) && !isPersonal(text))
  return isRequest ? impersonalRequestTrust : 1
}
const requestTokensMax = 28
const impersonalRequestTrust = 0.35

const endsWithQuestion = (text: string): boolean => /[?？؟][\p{P}\s]{0,5}$/u.test(text.slice(-6))

const isAnswer = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  tierIndex.role(row) === 'assistant' && !tierIndex.isFact(row)

const isAfterQuestion = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  endsWithQuestion(tierIndex.memory(row - 1).text)

/** Strength of a row of the time that a question names, where it asks for nothing else. */
const timeStrength = 1.2

/** Strength of a row that states what is asked for; below that of one which has all words and is similar. */
export const attributeStrength = 3

/** How well a row fits a question; 1 and up: relevant by itself. */
export function relevanceStrength(
  { signals, statesAttribute }: ScoredRow,
  { calibration, parsedQuery, concepts }: RankingQuery,
  { withContext }: { withContext: boolean } = { withContext: true },
): number {
  if (statesAttribute) return attributeStrength
  const { similarity, words, context, time } = signals
  const substance = Math.min(1, concepts.maxTotal / substantialScore)
  const strength =
    substance *
    (similarity / calibration.floor + (words + (withContext ? context : 0)) / wordRelevanceFloor)
  return asksOnlyTimeOrSpeaker({ parsedQuery, concepts })
    ? strength + timeStrength * time
    : strength
}

/** Whether a row has anything to do with a question. */
export function isRelated({ signals }: ScoredRow): boolean {
  const { similarity, words, context, time } = signals
  return similarity > 0 || words > 0 || context > 0 || time > 0
}
