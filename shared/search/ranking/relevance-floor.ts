import type { RankingQuery, ScoredRow } from '#shared/search/ranking/scores.ts'
import type { AnswerEvidence } from '#shared/search/ranking/answer-evidence.ts'
import { wordsOf } from '#shared/search/languages/languages.ts'
import { isFollowedByTurn } from '#shared/search/ranking/context.ts'
import { isImpersonalTask } from '#shared/search/query/sentence-kinds.ts'
import type { NamedSubject } from '#shared/search/query/named-subjects.ts'
import { speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'
import { buildConcepts, type Concepts } from '#shared/search/query/concepts.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { isCommonWord } from '#shared/search/words/term-weights.ts'
import type { ReadonlyWordIndex } from '#shared/search/words/word-index.ts'
import { runAtOnce } from '#shared/core/event-loop.ts'
import { emptySums, positionsOf, scoreWords } from '#shared/search/ranking/score-words.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import { textTests } from '#shared/search/ranking/text-tests.ts'
import { tuned } from '#shared/search/tuned.ts'

const bounds = tuned.floor

/** Best rows that are read for a name. */
const namedRowsMax = 48

/** Returns whether a row has all terms of one of the names. */
export function rowsThatName(names: readonly NamedSubject[]): (row: ScoredRow) => boolean {
  const positionsByRange = new Map<SearchRange, ReadonlySet<number>>()
  return ({ range, row }) => {
    const positions = positionsByRange.get(range) ?? positionsThatName(range, names)
    positionsByRange.set(range, positions)
    return positions.has(positionsOf(range).of(row))
  }
}

/** Reads the lists of the words: to read the texts of 48 rows took a seventh of a ranking. */
function positionsThatName(range: SearchRange, names: readonly NamedSubject[]): Set<number> {
  const { count, score } = positionsOf(range)
  const positions = new Set<number>()
  for (const name of names) {
    let having: Uint32Array | undefined
    for (const term of name) {
      const terms = [term, speakerMarker + term].map(one => ({ term: one, weight: 1 }))
      const sums = emptySums(count)
      const rows = score(terms, sums)
      having = having ? having.filter(at => sums[at]! > 0) : rows.slice()
    }
    for (const at of having ?? []) positions.add(at)
  }
  return positions
}

/**
 * Keeps the rows that are not much weaker than the best, since most answers spread over several turns; none unless
 * some row is relevant by itself. A row without a match of its own stays only as the reply to a row that is relevant
 * without context.
 *
 * @param evidenceOf the relevant row must also be likely to answer; for similarities that are made of words
 * @param isNamed whether a row has the name that is asked about: such rows are relevant
 */
export function filterRelevant(
  ranked: readonly ScoredRow[],
  rankingQuery: RankingQuery,
  options: {
    floor?: number
    evidenceOf?: AnswerEvidence | undefined
    isNamed?: ((row: ScoredRow) => boolean) | undefined
  } = {},
): ScoredRow[] {
  const { floor = 1, evidenceOf, isNamed } = options
  const strengths = ranked.map(scored => relevanceStrength(scored, rankingQuery))
  const best = strengths.reduce((one, other) => Math.max(one, other), 0)
  const reasonFloor = reasonFloorOf(floor, evidenceOf)
  const isReason = (scored: ScoredRow, i: number): boolean => {
    if (scored.statesAttribute) return strengths[i]! >= reasonFloor
    const strength = strengths[i]! * (evidenceOf ? 1 : wordTrust(scored))
    if (strength < reasonFloor || strength * requestTrust(scored) < reasonFloor) return false
    return !evidenceOf || (i < bounds.weighedMax && evidenceOf(scored) >= 0)
  }
  if (best < reasonFloor || !ranked.some(isReason))
    return isNamed ? ranked.slice(0, namedRowsMax).filter(isNamed) : []
  const strengthMin = Math.max(bounds.companion, best * bounds.companionShare)
  const ownStrengths = ranked.map(scored =>
    relevanceStrength(scored, rankingQuery, { withContext: false }),
  )
  const relevantRows = new Map<SearchRange, Set<number>>()
  for (const [i, { range, row }] of ranked.entries()) {
    if (ownStrengths[i]! < floor) continue
    const ofRange = relevantRows.get(range)
    if (ofRange) ofRange.add(row)
    else relevantRows.set(range, new Set([row]))
  }
  const isReply = ({ range, row }: ScoredRow) =>
    row > range.first &&
    relevantRows.get(range)?.has(row - 1) === true &&
    isFollowedByTurn(range.tierIndex, row - 1)
  return ranked.filter((scored, i) => {
    if (strengths[i]! < strengthMin) return false
    const ownStrength = ownStrengths[i]!
    if (!isAnswer(scored)) return ownStrength > 0 || isReply(scored)
    // An answer repeats much of the turns before it; it is needed where these only asked.
    return ownStrength >= bounds.companion || (isReply(scored) && isAfterQuestion(scored))
  })
}

/**
 * How far the words of a row count. Words of a row that is not similar at all are homonyms or in passing: it must have
 * nearly all words of the question to be relevant by itself.
 */
const wordTrust = ({ signals: { similarity, time } }: ScoredRow): number =>
  time > 0
    ? 1
    : bounds.wordTrustMin +
      (1 - bounds.wordTrustMin) * Math.min(1, similarity / bounds.trustedSimilarity)

/**
 * How far a row counts that is a question about the world or a task: it says nothing of the person who sent it. What
 * named people ask each other is part of what happened.
 */
const requestTrust = ({ range: { tierIndex }, row }: ScoredRow): number => {
  if (tierIndex.role(row) !== 'user' || tierIndex.tokens(row) > bounds.requestTokensMax) return 1
  if (tierIndex.speaker(row) !== undefined) return 1
  return tierIndex.passes(row, textTests.asksOfWorld) ? bounds.impersonalRequestTrust : 1
}

const isAnswer = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  tierIndex.role(row) === 'assistant' && !tierIndex.isFact(row)

const isAfterQuestion = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  tierIndex.passes(row - 1, textTests.endsWithQuestion)

/** Returns how well a row fits a question; from 1 on it is relevant by itself. */
export function relevanceStrength(
  { signals, statesAttribute }: ScoredRow,
  { calibration, concepts, isOpen }: RankingQuery,
  { withContext }: { withContext: boolean } = { withContext: true },
): number {
  if (statesAttribute) return bounds.attributeStrength
  const { similarity, words, context, time } = signals
  const substance = Math.min(1, concepts.maxTotal / bounds.substantialScore)
  const strength =
    substance *
    (similarity / calibration.floor + (words + (withContext ? context : 0)) / bounds.wordRelevance)
  return isOpen ? strength + bounds.timeStrength * time : strength
}

/** The strength of the best row with which a question finds anything. */
const reasonFloorOf = (floor: number, evidenceOf: AnswerEvidence | undefined): number =>
  evidenceOf && floor <= bounds.question ? bounds.worded : floor

/** Returns the lowest strength of the best row with which a part of a message finds anything. */
export function floorOf(text: string, kind: Question['kind'], asks: boolean): number {
  if (kind === 'statement' && asks) return bounds.besideQuestion
  if (kind !== 'name' && isImpersonalTask(text)) return bounds.task
  return kind === 'statement' ? bounds.statement : bounds.question
}

/** Whether a part has a name that few rows have. */
export function isRareName({ terms }: ParsedQuery, indexes: readonly ReadonlyWordIndex[]): boolean {
  const count = indexes.reduce((sum, index) => sum + index.count, 0)
  return terms.some(({ term }) => {
    if (term.endsWith('*') || isCommonWord(term)) return false
    const rows = indexes.reduce((sum, index) => sum + index.documentFrequency(term), 0)
    return rows > 0 && rows <= Math.max(bounds.rareNameRows, count * bounds.rareNameShare)
  })
}

/** Slack of spans for time zones: half a day. */
const slackMs = 43_200_000

/**
 * Whether a question names a time that is over and of which there are no rows: other rows that share its words are no
 * answer. Today, this week or a day to come may have been talked about before.
 */
export function isNamedTimeEmpty(
  ranges: readonly SearchRange[],
  { times }: ParsedQuery,
  now: number,
): boolean {
  if (times.length === 0 || times.some(({ to }) => to > now + slackMs)) return false
  return ranges.every(({ tierIndex, first, end }) =>
    times.every(time => {
      const span = tierIndex.range(time.from, time.to)
      return Math.max(first, span.first) >= Math.min(end, span.end)
    }),
  )
}

/** Words of times that name no day, month or year; rows have them for different times. */
const relativeWords: ReadonlySet<string> = new Set(wordsOf('relativeTimeWords').flatMap(termsOf))

/**
 * Keeps the rows that answer a question about a time without rows of its own: they have nearly all words that are
 * asked for, or name that time themselves ("in March I move to Naxos"). Best first.
 */
export function keepClearMatches(
  rows: readonly ScoredRow[],
  { parsedQuery, weights }: RankingQuery,
  ranges: readonly SearchRange[],
): ScoredRow[] {
  const { terms, nonTimeTerms } = parsedQuery
  const indexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const besideTime = new Set(nonTimeTerms)
  const questionTerms = terms.filter(({ term }) => besideTime.has(term))
  const timeTerms = terms.filter(
    ({ term, weight }) => !besideTime.has(term) && !relativeWords.has(term) && weight > 0,
  )
  const shareOf = createShares(rows, buildConcepts(questionTerms, indexes, weights))
  const timeOf = createShares(rows, buildConcepts(timeTerms, indexes, weights))
  return rows
    .filter(
      row =>
        (questionTerms.length >= bounds.clearTermsMin && shareOf(row) >= bounds.clearShare) ||
        timeOf(row) >= bounds.clearShare,
    )
    .slice(0, bounds.clearRowsMax)
}

/** Returns the share of the concepts that each row has, 0 to 1. */
function createShares(rows: readonly ScoredRow[], concepts: Concepts): (row: ScoredRow) => number {
  const shares = new Map<ScoredRow, number>()
  if (concepts.maxTotal === 0) return () => 0
  for (const [range, ofRange] of Map.groupBy(rows, row => row.range)) {
    const { totals, positions, release } = runAtOnce(scoreWords(range, concepts))
    for (const row of ofRange) shares.set(row, totals[positions.of(row.row)]! / concepts.maxTotal)
    release()
  }
  return row => shares.get(row) ?? 0
}
