import type { Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import { buildConcepts } from '#shared/search/query/concepts.ts'
import { asksOfNames, namedSubjects } from '#shared/search/query/named-subjects.ts'
import {
  parseSearchQuery,
  parseStatement,
  type ParsedQuery,
} from '#shared/search/query/parse-query.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { isAsking, questionKind } from '#shared/search/query/sentence-kinds.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { createEvidence, type AnswerEvidence } from '#shared/search/ranking/answer-evidence.ts'
import { nearestRowsOf, type NearestRows } from '#shared/search/ranking/candidates.ts'
import type { QuestionRanking, RankedRow } from '#shared/search/ranking/fusion.ts'
import { personRows, rankByKind } from '#shared/search/ranking/rank-by-kind.ts'
import {
  calibrateForVault,
  type SearchBounds,
  type SearchRange,
} from '#shared/search/ranking/ranges.ts'
import {
  filterRelevant,
  floorOf,
  isNamedTimeEmpty,
  isRareName,
  keepClearMatches,
  relevanceStrength,
  rowsThatName,
} from '#shared/search/ranking/relevance-floor.ts'
import {
  asksOnlyTimeOrSpeaker,
  firstCandidateCount,
  rankRows,
  type RankingQuery,
  type RowLimits,
  type ScoredRow,
} from '#shared/search/ranking/scores.ts'
import {
  defaultWeights,
  isContext,
  isRelated,
  scoreOf,
  type RankingWeights,
} from '#shared/search/ranking/signals.ts'
import { asksSmallWords, smallWordsFirst } from '#shared/search/ranking/small-words.ts'
import { tuned } from '#shared/search/tuned.ts'

export type SearchOptions = RowLimits &
  SearchBounds & {
    /** Epoch milliseconds; "yesterday" is relative to it. */
    now: number
    /** Leave out what is not relevant, even if nothing remains. */
    floor: boolean
    /** Lowest score, 0 to 1; rows that are found for the turns around them have none. */
    minScore?: number | undefined
    /** The whole question: a row with this very text comes first, with the score 1. */
    wholeText?: string
    calibration: Calibration
    /** Default: those that were measured. */
    weights?: RankingWeights
    /** Called with the number of memories that match, beyond the limit too. */
    onMatchCount?: ((count: number) => void) | undefined
    /** Called with why the floor leaves out what matches, where it does. */
    onAbstain?: ((reason: Abstention) => void) | undefined
  }

/**
 * A part of the message names a time that is over and has no rows, or rows have a score of 0.5 and up, and none is likely
 * to answer.
 */
export type Abstention = 'nothing_then' | 'no_answer'

/** A part of a message with its vector; null where it is ranked by words alone. */
export type EmbeddedQuestion = Question & { vector: Float32Array | null }

/** What all parts of a message are ranked with. */
export type MessageSearch = {
  ranges: readonly SearchRange[]
  options: SearchOptions
  calibrationOf: (vector: Float32Array | null) => Calibration
  /** The parts whose vectors are compared with all rows. */
  comparedQuestions: readonly EmbeddedQuestion[]
  nearestRows: NearestRows
  /** Whether a part of the message asks. */
  asks: boolean
  /** Whether the message has one part besides names. */
  isAlone: boolean
}

/** What the ranking of one part found. */
export type QuestionResult = {
  parsedQuery: ParsedQuery
  /** Undefined for a name that many rows have. */
  ranking?: QuestionRanking
  /** It names a time that is over and has no rows. */
  isTimeEmpty: boolean
  /** Rows match by themselves, some of which the floor may leave out. */
  hasClearMatch: boolean
}

/** Prepares the ranking of the parts of a message. A statement where another part asks is not compared with all rows. */
export function openMessageSearch(
  ranges: readonly SearchRange[],
  questions: readonly EmbeddedQuestion[],
  options: SearchOptions,
): MessageSearch {
  const asks = questions.some(({ kind }) => kind === 'asking')
  const comparedQuestions = questions.filter(({ kind }) => !(kind === 'statement' && asks))
  const vectors = comparedQuestions.flatMap(({ vector }) => vector ?? [])
  return {
    ranges,
    options,
    calibrationOf: calibrateForVault(ranges, options.calibration),
    comparedQuestions,
    nearestRows: nearestRowsOf(vectors, firstCandidateCount(options.limit)),
    asks,
    isAlone: questions.filter(({ kind }) => kind !== 'name').length === 1,
  }
}

/**
 * Ranks for one part of a message, with a floor of its own. Prove a change by `npm run bench` before and after.
 *
 * | Part | Its vector is compared with | Read by |
 * |---|---|---|
 * | whole, asking, and a statement where no part asks | all rows | parseSearchQuery |
 * | statement beside a question | rows with its words | parseStatement |
 * | name | none: it has words alone, and ranks nothing where many rows have it | parseSearchQuery |
 */
export function* rankQuestion(
  question: EmbeddedQuestion,
  message: MessageSearch,
): Steps<QuestionResult> {
  const { ranges, options, asks, isAlone } = message
  const { text, kind, vector } = question
  const comparesAllRows = message.comparedQuestions.includes(question)
  const parsedQuery = comparesAllRows ? parseSearchQuery(text, options.now) : parseStatement(text)
  const noRanking: QuestionResult = { parsedQuery, isTimeEmpty: false, hasClearMatch: false }
  const wordIndexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  if (kind === 'name' && !isRareName(parsedQuery, wordIndexes)) return noRanking
  const query = buildQuery(question, parsedQuery, message)
  const wantedKind = asksOfItself(question, message) ? questionKind(text) : undefined
  if (wantedKind === 'self' && !options.everyRow) {
    const matches = options.floor ? [] : yield* rankRows(ranges, query, options)
    const ranking = yield* personRows(ranges, options, query, matches.filter(isRelated))
    return { ...noRanking, ranking }
  }
  const evidenceOf = needsEvidence(question, message) ? createEvidence(query) : undefined
  const matches = yield* rankRows(ranges, query, options)
  const { rows, ...result } = options.floor
    ? rankForPrompt(question, query, { matches, evidenceOf }, message)
    : { ...noRanking, rows: yield* rankForSearch(query, matches, message) }
  const weight = kind === 'statement' && !asks ? 1 : tuned.parts[kind]
  const toRanked = (row: ScoredRow): RankedRow => ({
    ...row,
    strength: relevanceStrength(row, query) * weight,
    evidence: () => (isAlone ? evidenceOf?.(row) : undefined),
    vector,
  })
  return { ...result, ranking: { rows: rankByKind(rows, wantedKind), weight, toRanked } }
}

/** Whether a part is compared with all rows and is more than a name. */
const asksOfItself = (question: EmbeddedQuestion, { comparedQuestions }: MessageSearch): boolean =>
  question.kind !== 'name' && comparedQuestions.includes(question)

/** Some of several sentences in one question only introduce the subject. */
const needsEvidence = ({ text, kind }: EmbeddedQuestion, { options, isAlone }: MessageSearch) =>
  options.floor && (kind === 'asking' || (isAlone && splitSentences(text).length === 1))

/** Chooses without the floor: all that is related. */
function* rankForSearch(
  query: RankingQuery,
  matches: readonly ScoredRow[],
  { ranges, options }: MessageSearch,
): Steps<readonly ScoredRow[]> {
  const rows = asksSmallWords(query.parsedQuery)
    ? yield* smallWordsFirst(ranges, query, matches, options)
    : matches
  return rows.filter(row => options.everyRow === true || isRelated(row))
}

/** Chooses with the floor: what is relevant, likely to answer, and of the time that is named. */
function rankForPrompt(
  question: EmbeddedQuestion,
  query: RankingQuery,
  found: { matches: readonly ScoredRow[]; evidenceOf: AnswerEvidence | undefined },
  message: MessageSearch,
): Omit<QuestionResult, 'ranking'> & { rows: readonly ScoredRow[] } {
  const { matches, evidenceOf } = found
  const { ranges, options, asks } = message
  const { text, parsedQuery } = query
  const names = asksOfItself(question, message) ? namedSubjects(text) : []
  const isNamed = asksOfNames(text, names, parsedQuery) ? rowsThatName(names) : undefined
  const floor = floorOf(text, question.kind, asks)
  const relevant = filterRelevant(matches, query, { floor, evidenceOf, isNamed })
  const isTimeEmpty = isNamedTimeEmpty(ranges, parsedQuery, options.now)
  const rows = isTimeEmpty ? keepClearMatches(relevant, query, ranges) : relevant
  return { parsedQuery, rows, isTimeEmpty, hasClearMatch: hasClearMatch(matches, query, options) }
}

function buildQuery(
  question: EmbeddedQuestion,
  parsedQuery: ParsedQuery,
  { ranges, options, comparedQuestions, nearestRows, calibrationOf }: MessageSearch,
): RankingQuery {
  const { text, vector } = question
  const { now, floor, weights = defaultWeights } = options
  const comparesAllRows = comparedQuestions.includes(question)
  const wordIndexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const concepts = buildConcepts(parsedQuery.terms, wordIndexes, weights, { few: !comparesAllRows })
  return {
    text,
    vector,
    nearestRows: comparesAllRows ? nearestRows : null,
    now,
    calibration: calibrationOf(vector),
    parsedQuery,
    concepts,
    isOpen: asksOnlyTimeOrSpeaker(parsedQuery, concepts),
    asksQuestion: floor || isAsking(text),
    weights,
  }
}

/** Score from which on a search says that a row matches by itself. */
const clearScore = 0.5

/** Whether a row would match by itself in a search, where nothing is lost for what only repeats the question. */
function hasClearMatch(
  rows: readonly ScoredRow[],
  { text, weights }: RankingQuery,
  { minScore = 0 }: SearchOptions,
): boolean {
  const questionLoss = isAsking(text) ? 0 : weights.question
  const scoreMin = Math.max(minScore, clearScore)
  return rows.some(({ relevance, ownShare, signals }) => {
    const searchRelevance = relevance / (1 - questionLoss * signals.question)
    return !isContext(signals) && scoreOf({ relevance: searchRelevance, ownShare }) >= scoreMin
  })
}
