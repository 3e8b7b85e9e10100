import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import { calibrateForVault } from '#shared/search/ranking/calibrated-score.ts'
import { blendTiers } from '#shared/search/ranking/blend.ts'
import { buildConcepts } from '#shared/search/query/concepts.ts'
import {
  defaultWeights,
  type Signals,
  type RankingWeights,
} from '#shared/search/ranking/fuse-signals.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import { firstCandidateCount, rankRows, type RowLimits } from '#shared/search/ranking/rank-rows.ts'
import { rankByKind, isAboutPerson } from '#shared/search/ranking/kind-ways.ts'
import { floorOf, isRareName, kindWeights } from '#shared/search/ranking/question-floors.ts'
import { questionKind } from '#shared/search/query/question-kinds.ts'
import { buildSearchRanges, type SearchRange } from '#shared/search/ranking/search-range.ts'
import { asksOfNames, namedSubjects } from '#shared/search/query/named-subjects.ts'
import { parseSearchQuery, parseStatement } from '#shared/search/query/parse-query.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { nearestRowsOf } from '#shared/search/ranking/nearest-rows.ts'
import { rescore } from '#shared/search/ranking/rescore.ts'
import {
  countMatching,
  fuseRankings,
  personRows,
  sameTextFirst,
  type QuestionRanking,
  type RankedRow,
} from '#shared/search/ranking/question-ranking.ts'
import { isNamedTimeEmpty, keepClearMatches } from '#shared/search/ranking/empty-time.ts'
import { certainEvidence, createEvidence } from '#shared/search/ranking/answer-evidence.ts'
import { scoreOf } from '#shared/search/ranking/explain-hit.ts'
import {
  filterRelevant,
  rowsThatName,
  isRelated,
  relevanceStrength,
} from '#shared/search/ranking/relevance-floor.ts'

export type SearchOptions = RowLimits & {
  /** Epoch milliseconds; "yesterday" is relative to it. */
  now: number
  /** Default: all tiers, blended. */
  tiers?: readonly Tier[]
  /** Lowest importance, 1 to 10; rows without one are left out whenever it is set. */
  importance?: number
  /** Rows without such metadata are left out. */
  metadata?: MetadataFilter
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
  /** Leave out what is not relevant, even if nothing remains. */
  floor: boolean
  /** What was asked, whole: a row with this very text comes first, with the score 1. */
  query?: string
  calibration: Calibration
  /** Called with the number of memories that match, among the best or not. */
  onMatchCount?: ((count: number) => void) | undefined
  /** Called when a part of the message names a time that is over and of which there are no rows. */
  onEmptyTime?: (() => void) | undefined
}

export type SearchQuery = SearchOptions & {
  text: string
  /** Null when the query could not be embedded: then it is ranked by words alone. */
  vector: Float32Array | null
}

export type SearchHit = {
  memory: Memory
  /** 0 to 1, in the order of the hits: see `scoreOf`. */
  score: number
  /** Cosine of its vector with that of the query; undefined when the query has none. */
  similarity: number | undefined
  /** Ranking value: 0 and up. */
  relevance: number
  /** How well it fits the question; from 1 on it is relevant by itself. */
  strength: number
  /** How sure it is that it answers the only question, in log odds; undefined where that is not known. */
  evidence?: number | undefined
  signals: Signals
  /** Position of its vault index among those searched. */
  indexNumber: number
}

/**
 * The most relevant memories of the indexes for a query, best first, each text once (its newest
 * copy). Similarity, words, context, times, names and recency are fused into one relevance; age only
 * decides between near equals. Rows without any match are left out even without the floor. Only the
 * texts of the result are decoded.
 */
export function rank(
  vaultIndexes: readonly VaultIndex[],
  { text, vector, ...bounds }: SearchQuery,
  weights: RankingWeights = defaultWeights,
): SearchHit[] {
  return rankQuestions(vaultIndexes, [{ text, vector, kind: 'whole' }], bounds, weights)
}

/** A part of a message with its vector; null where it is ranked by words alone. */
export type EmbeddedQuestion = Question & { vector: Float32Array | null }

/**
 * Ranks for each part of a message, with the floor each by its own, and fuses the results: a row has
 * the relevance of the part that it fits best. All vectors are compared in one pass; a statement beside a
 * question needs rows with its words, so its vector is compared with these only.
 */
export function rankQuestions(
  vaultIndexes: readonly VaultIndex[],
  questions: readonly EmbeddedQuestion[],
  search: SearchOptions,
  weights: RankingWeights = defaultWeights,
): SearchHit[] {
  const ranges = buildSearchRanges(vaultIndexes, search)
  return runAtOnce(rankRanges(ranges, questions, search, weights))
}

/**
 * As `rankQuestions`, in steps of a millisecond or less.
 *
 * @returns undefined when an index changed between two steps.
 */
export function* rankingSteps(
  vaultIndexes: readonly VaultIndex[],
  questions: readonly EmbeddedQuestion[],
  search: SearchOptions,
): Steps<SearchHit[] | undefined> {
  const ranges = buildSearchRanges(vaultIndexes, search)
  const versions = ranges.map(({ tierIndex }) => tierIndex.version)
  const steps = rankRanges(ranges, questions, search, defaultWeights)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    yield
    if (ranges.some(({ tierIndex }, i) => tierIndex.version !== versions[i])) return undefined
  }
}

function* rankRanges(
  ranges: readonly SearchRange[],
  questions: readonly EmbeddedQuestion[],
  { limit: wanted, ...options }: SearchOptions,
  weights: RankingWeights,
): Steps<SearchHit[]> {
  const limit = ranges.reduce((sum, { first, end }) => Math.min(wanted, sum + end - first), 0)
  const matching = countMatching(options.onMatchCount)
  const search = { ...options, limit, onMatching: matching.add }
  const { now } = search
  const calibrationOf = calibrateForVault(ranges, search.calibration)
  if (limit < 1) return []
  const wordIndexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const asks = questions.some(({ kind }) => kind === 'asking')
  const scanned = questions.filter(({ kind }) => !(kind === 'statement' && asks))
  const nearestOfAll = nearestRowsOf(
    scanned.flatMap(({ vector }) => vector ?? []),
    firstCandidateCount(limit),
  )
  const isAlone = questions.filter(({ kind }) => kind !== 'name').length === 1
  let emptyTimes = 0
  const withoutFiller = (found: ScoredRow[], query: RankingQuery): ScoredRow[] => {
    if (!isNamedTimeEmpty(ranges, query.parsedQuery, now)) return found
    emptyTimes++
    return keepClearMatches(found, query, ranges)
  }
  const rankQuestion = function* (question: EmbeddedQuestion): Steps<QuestionRanking | undefined> {
    const { text, vector, kind } = question
    const isBeside = !scanned.includes(question)
    const parsedQuery = isBeside ? parseStatement(text) : parseSearchQuery(text, now)
    if (kind === 'name' && !isRareName(parsedQuery, wordIndexes)) return
    const concepts = buildConcepts(parsedQuery.terms, wordIndexes, weights, { few: isBeside })
    const nearestRows = isBeside ? null : nearestOfAll
    const calibration = calibrationOf(vector)
    const query = { text, vector, nearestRows, now, calibration, parsedQuery, concepts, weights }
    const wanted = isBeside || kind === 'name' ? undefined : questionKind(text)
    if (isAboutPerson(wanted) && !search.everyRow) {
      const others = search.floor ? [] : yield* rankRows(ranges, query, search)
      return yield* personRows(ranges, search, query, others.filter(isRelated))
    }
    // Of several sentences as one, some only say what is talked about.
    const isWeighed =
      search.floor && (kind === 'asking' || (isAlone && splitSentences(text).length === 1))
    const evidenceOf = isWeighed ? createEvidence(query) : undefined
    const names = kind === 'name' || isBeside ? [] : namedSubjects(text)
    const isNamed = asksOfNames(text, names, parsedQuery) ? rowsThatName(names) : undefined
    const all = yield* rankRows(ranges, query, search)
    const relevant = search.floor
      ? withoutFiller(
          filterRelevant(all, query, { floor: floorOf(text, kind, asks), evidenceOf, isNamed }),
          query,
        )
      : all.filter(row => search.everyRow === true || isRelated(row))
    const weight = kind === 'statement' && !asks ? 1 : kindWeights[kind]
    const toRanked = (row: ScoredRow): RankedRow => ({
      ...row,
      relevance: row.relevance * weight,
      strength: relevanceStrength(row, query) * (kind === 'asking' ? 1 : weight),
      weigh: () => (isAlone ? evidenceOf?.(row) : undefined),
      vector,
    })
    return { rows: rankByKind(relevant, wanted), toRanked }
  }
  const rankings: QuestionRanking[] = []
  for (const question of questions) {
    const ranking = yield* rankQuestion(question)
    if (ranking) rankings.push(ranking)
    yield
  }
  if (emptyTimes > 0) search.onEmptyTime?.()
  matching.report()
  const choose = <Row extends ScoredRow>(ranked: readonly Row[]): Row[] => {
    const rows = search.query === undefined ? ranked : sameTextFirst(ranked, search.query)
    return search.tiers ? rows.slice(0, limit) : blendTiers(rows, limit)
  }
  const [first] = rankings
  // A search has some hundred rows, of which ten are returned.
  const chosen =
    first && questions.length === 1
      ? choose(first.rows).map(first.toRanked)
      : choose(fuseRankings(rankings))
  const isCertain = chosen.length <= weighedMax && chosen.slice(0, certainMax).some(isCertainAnswer)
  const cosines = rescore(chosen, calibrationOf)
  return chosen.map(({ range, row, relevance, strength, weigh, signals }, i) => ({
    memory: range.tierIndex.memory(row),
    score: scoreOf(relevance),
    similarity: cosines[i],
    relevance,
    strength,
    evidence: isCertain ? weigh?.() : undefined,
    signals,
    indexNumber: range.indexNumber,
  }))
}

/** The others are weighed where one of so many answers plainly, and where they are few. */
const certainMax = 3
const weighedMax = 12
const isCertainAnswer = ({ weigh }: RankedRow): boolean => (weigh?.() ?? -1) >= certainEvidence
