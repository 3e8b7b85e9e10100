import type { Concepts } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import { emptySums, positionsOf } from '#shared/search/ranking/score-words.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { isFollowedByTurn } from '#shared/search/ranking/context.ts'
import { textTests } from '#shared/search/ranking/text-tests.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'
import { numberMarker, questionMarker, timeMarker } from '#shared/search/words/index-terms.ts'
import { tuned } from '#shared/search/tuned.ts'

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
  /** 1 for a speaker that the query names, or the role it asks for. */
  speakerMatch: number
  /** Contains the type of answer asked for: a number, a date. */
  answerType: number
  recency: number
  /** Up to 1 for a turn of the user that only asks, by how much of the query it repeats. */
  question: number
  /** By length in tokens: low for a few words, and falling with the length of a long text. */
  informativeness: number
}

/** Those of a row that is found in another way. */
export const noSignals: Signals = {
  similarity: 0,
  words: 0,
  context: 0,
  time: 0,
  speakerMatch: 0,
  answerType: 0,
  recency: 0,
  question: 0,
  informativeness: 1,
}

export type RankingWeights = typeof tuned.weights
export const defaultWeights: RankingWeights = tuned.weights

/**
 * Fuses the signals into one relevance. Similarity and words are added on their calibrated scales, not by rank, so
 * that margins count. The other signals multiply: they decide between related rows and never lift an unrelated one.
 * Only a time that the query names adds, since "what happened in May" names nothing else.
 *
 * @param context another one than that of the signals; 0 gives the relevance of the row alone
 */
export function fuseSignals(
  signals: Signals,
  weights: RankingWeights,
  context = signals.context,
): number {
  const { similarity, words, time, speakerMatch, answerType, recency, informativeness } = signals
  const carried = 1 - weights.question * signals.question
  const related = similarity + weights.words * words + context
  const support =
    (1 + weights.time * time) *
    (1 + weights.speakerMatch * speakerMatch) *
    (1 + weights.answerType * answerType)
  return (
    informativeness *
    carried *
    (related * support * (1 + weights.recency * recency) + tuned.signals.timeOnlyWeight * time)
  )
}

/** Returns for each row 1 when the query names its speaker, less when only its role is asked for. */
export function speakerHints(
  range: SearchRange,
  rows: Uint32Array,
  query: { text: string; parsedQuery: ParsedQuery; concepts: Concepts },
): Float32Array {
  const { tierIndex } = range
  const hints = new Float32Array(rows.length)
  const { role } = query.parsedQuery
  if (role) {
    for (let i = 0; i < rows.length; i++)
      if (tierIndex.role(rows[i]!) === role) hints[i] = tuned.signals.roleHintStrength
  }
  const isNamed = createSpeakerMatcher(query.text)
  for (let i = 0; i < rows.length; i++) {
    const speaker = tierIndex.speaker(rows[i]!)
    if (speaker !== undefined && isNamed(speaker)) hints[i] = 1
  }
  applyMarkerHints(range, rows, query.concepts.speakerMarkers, hints)
  return hints
}

/** Returns for each row 1 when it contains a number or a time and the query asks for one. */
export function answerTypeHints(
  range: SearchRange,
  rows: Uint32Array,
  parsedQuery: ParsedQuery,
): Float32Array {
  const hints = new Float32Array(rows.length)
  const markers = [
    ...(parsedQuery.wantsNumber ? [numberMarker] : []),
    ...(parsedQuery.wantsTime ? [timeMarker] : []),
  ]
  applyMarkerHints(range, rows, markers, hints)
  return hints
}

/** Whether another person follows: what people ask each other is part of what happened. */
const isAnsweredByPerson = ({ tierIndex, end }: SearchRange, row: number): boolean =>
  row + 1 < end && isFollowedByTurn(tierIndex, row) && tierIndex.role(row + 1) === 'user'

/** Returns for each row 1 for a short turn of the user that is one question. */
export function questionHints(range: SearchRange, rows: Uint32Array): Float32Array {
  const { tierIndex } = range
  const hints = new Float32Array(rows.length)
  applyMarkerHints(range, rows, [questionMarker], hints)
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    if (hints[i] === 0) continue
    const isShort =
      tierIndex.role(row) === 'user' && tierIndex.tokens(row) <= tuned.signals.questionTokensMax
    const isQuestion =
      isShort && !isAnsweredByPerson(range, row) && tierIndex.passes(row, textTests.onlyAsks)
    if (!isQuestion) hints[i] = 0
  }
  return hints
}

/** Whether the text names a speaker. Cached: a conversation has few speakers. */
function createSpeakerMatcher(text: string): (speaker: string) => boolean {
  const known = new Map<string, boolean>()
  let words: Set<string> | undefined
  return speaker => {
    const hit = known.get(speaker)
    if (hit !== undefined) return hit
    words ??= new Set(foldText(text).match(/[\p{L}\p{N}]+/gu))
    const isNamed = foldText(speaker)
      .split(/\s+/)
      .some(part => words!.has(part))
    known.set(speaker, isNamed)
    return isNamed
  }
}

function applyMarkerHints(
  range: SearchRange,
  rows: Uint32Array,
  markers: readonly string[],
  hints: Float32Array,
) {
  if (markers.length === 0) return
  const positions = positionsOf(range)
  const sums = emptySums(positions.count)
  const terms = markers.map(term => ({ term, weight: 1 }))
  if (positions.score(terms, sums).length === 0) return
  for (let i = 0; i < rows.length; i++) if (sums[positions.of(rows[i]!)]! > 0) hints[i] = 1
}

export type MatchReason = 'words' | 'similarity' | 'name' | 'time' | 'context'

/** What a row has of a question by itself, but for times. */
export const ownSignal = ({ similarity, words }: Signals): number =>
  similarity + defaultWeights.words * words

/** Whether a row is found for the turns around it, which answer, and not by itself. */
export const isContext = (signals: Signals): boolean =>
  signals.context > 0 && signals.time === 0 && ownSignal(signals) < tuned.signals.ownSignalMin

/** Least signal that is given as a reason. */
const signalMin = 0.1

/** Returns the signals that a row was ranked by, the strongest kinds first; at least one. */
export function matchReasons(signals: Signals): MatchReason[] {
  if (isContext(signals)) return ['context']
  const { words, similarity, speakerMatch, time } = signals
  const reasons: MatchReason[] = []
  if (words >= signalMin) reasons.push('words')
  if (similarity >= signalMin) reasons.push('similarity')
  if (speakerMatch >= 1) reasons.push('name')
  if (time > 0) reasons.push('time')
  if (reasons.length > 0) return reasons
  return [words > similarity ? 'words' : 'similarity']
}

/** Greatest score of a row whose text is not the query itself; that one has 1. */
const scoreMax = 0.9999
/** Greatest score that the turns around a row give it, alone and relative to the best of them. */
const contextScoreMax = 0.4999
const contextScoreRatio = 0.999

/** Maps a relevance to a score. Monotone. */
const toScore = (relevance: number): number =>
  relevance === Infinity
    ? 1
    : Math.min(scoreMax, 1 - 2 ** (-relevance / tuned.signals.middleRelevance))

/**
 * The score of a row, 0 to 1: 0.4 to 0.5 broad, 0.5 to 0.65 balanced, 0.65 and up strict. From 0.5 on it is that of the row
 * by itself. Below, the turns around it add at most as much as it has itself, and never lift it to 0.5.
 */
export function scoreOf({ relevance, ownShare }: { relevance: number; ownShare: number }): number {
  const own = relevance * ownShare
  if (own >= tuned.signals.middleRelevance) return toScore(own)
  return Math.min(contextScoreMax, toScore(Math.min(relevance, 2 * own)))
}

/** The score of a row that is found for the turns around it, of which the best has the score `best`. */
export const contextScoreOf = (relevance: number, best: number): number =>
  Math.min(toScore(relevance), contextScoreMax, best * contextScoreRatio)

/** Returns how likely the hits answer a question, 0 to 1, by the strongest of them; 0 without hits. */
export function answerConfidence(
  hits: readonly { strength: number; signals: Pick<Signals, 'words' | 'similarity'> }[],
): number {
  if (hits.length === 0) return 0
  const best = hits.reduce((one, hit) => (hit.strength > one.strength ? hit : one))
  const { bias, words, similarity } = tuned.confidence
  const sum = bias + words * best.signals.words + similarity * best.signals.similarity
  return 1 / (1 + Math.exp(-sum))
}

/** Whether a row has anything to do with a question, or with a row around it that has. */
export const isRelated = ({ signals }: { signals: Signals }): boolean =>
  signals.context > 0 || isMatch(signals)

/** Whether a row has anything to do with a question by itself. */
export const isMatch = ({ similarity, words, time }: Signals): boolean =>
  similarity > 0 || words > 0 || time > 0
