import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import { blendTiers } from '#shared/search/ranking/blend.ts'
import { buildConcepts } from '#shared/search/query/concepts.ts'
import {
  defaultWeights,
  type Signals,
  type RankingWeights,
} from '#shared/search/ranking/fuse-signals.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import {
  firstCandidateCount,
  isNotExcluded,
  rankRows,
  type RowLimits,
} from '#shared/search/ranking/rank-rows.ts'
import { rankByKind, rowsOfPerson, isAboutPerson } from '#shared/search/ranking/kind-ways.ts'
import { floorOf, isRareName, kindWeights } from '#shared/search/ranking/question-floors.ts'
import { questionKind } from '#shared/search/query/question-kinds.ts'
import { buildSearchRanges, type SearchRange } from '#shared/search/ranking/search-range.ts'
import { parseSearchQuery, parseStatement } from '#shared/search/query/parse-query.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { nearestRowsOf } from '#shared/search/ranking/nearest-rows.ts'
import { rescore } from '#shared/search/ranking/rescore.ts'
import { uniqueTexts } from '#shared/search/ranking/unique-texts.ts'
import { isNamedTimeEmpty, keepClearMatches } from '#shared/search/ranking/empty-time.ts'
import { certainEvidence, createEvidence } from '#shared/search/ranking/answer-evidence.ts'
import { hitScore } from '#shared/search/ranking/explain-hit.ts'
import {
  attributeStrength,
  filterRelevant,
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
  calibration: Calibration
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
  /** Calibrated similarity, 0 to 1; where there is none, a share of the other signals. */
  score: number
  /** Ranking value: 0 and up, comparable within one result only. */
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
  search: SearchOptions,
  weights: RankingWeights,
): Steps<SearchHit[]> {
  const { limit, calibration, now } = search
  if (limit < 1 || ranges.length === 0) return []
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
  const rankQuestion = function* (question: EmbeddedQuestion): Steps<Ranking | undefined> {
    const { text, vector, kind } = question
    const isBeside = !scanned.includes(question)
    const parsedQuery = isBeside ? parseStatement(text) : parseSearchQuery(text, now)
    if (kind === 'name' && !isRareName(parsedQuery, wordIndexes)) return
    const concepts = buildConcepts(parsedQuery.terms, wordIndexes, weights, { few: isBeside })
    const nearestRows = isBeside ? null : nearestOfAll
    const query = { text, vector, nearestRows, now, calibration, parsedQuery, concepts, weights }
    const wanted = isBeside || kind === 'name' ? undefined : questionKind(text)
    if (isAboutPerson(wanted)) return yield* personRows(ranges, search, query)
    // Of several sentences as one, some only say what is talked about.
    const isWeighed =
      search.floor && (kind === 'asking' || (isAlone && splitSentences(text).length === 1))
    const evidenceOf = isWeighed ? createEvidence(query) : undefined
    const all = yield* rankRows(ranges, query, search)
    const relevant = search.floor
      ? withoutFiller(filterRelevant(all, query, floorOf(text, kind, asks), evidenceOf), query)
      : all.filter(isRelated)
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
  const rankings: Ranking[] = []
  for (const question of questions) {
    const ranking = yield* rankQuestion(question)
    if (ranking) rankings.push(ranking)
    yield
  }
  if (emptyTimes > 0) search.onEmptyTime?.()
  const choose = <Row extends ScoredRow>(rows: readonly Row[]): Row[] =>
    search.tiers ? rows.slice(0, limit) : blendTiers(rows, limit)
  const [first] = rankings
  // A search has some hundred rows, of which ten are returned.
  const chosen =
    first && questions.length === 1
      ? choose(first.rows).map(first.toRanked)
      : choose(fuseRankings(rankings))
  const isCertain = chosen.length <= weighedMax && chosen.slice(0, certainMax).some(isCertainAnswer)
  rescore(chosen, calibration)
  return chosen.map(({ range, row, relevance, strength, weigh, signals, vector }) => ({
    memory: range.tierIndex.memory(row),
    score: vector ? hitScore(signals) : signals.words,
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

/** The rows of a part of a message, best first, and what is known of a row that is chosen. */
type Ranking = { rows: readonly ScoredRow[]; toRanked: (row: ScoredRow) => RankedRow }

/** A row with the vector of the part of the message that it fits best. */
type RankedRow = ScoredRow & {
  strength: number
  /** Its evidence, where that is known; costs the terms of its text. */
  weigh?: () => number | undefined
  vector: Float32Array | null
}

/** What is known of the person who asks. */
function* personRows(
  ranges: readonly SearchRange[],
  search: Pick<SearchOptions, 'excludeTexts'>,
  { vector, parsedQuery: { labels } }: RankingQuery,
): Steps<Ranking> {
  const rows = yield* rowsOfPerson(ranges, { isIdentity: labels !== undefined })
  return {
    rows: uniqueTexts(rows.filter(isNotExcluded(search))),
    toRanked: row => ({ ...row, strength: row.statesAttribute ? attributeStrength : 1, vector }),
  }
}

/** Each row once, as the part ranked it that it fits best; best first. */
function fuseRankings(rankings: readonly Ranking[]): RankedRow[] {
  const ranked = rankings
    .flatMap(({ rows, toRanked }) => rows.map(toRanked))
    .filter(({ relevance }) => relevance > 0)
  ranked.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
  // A row has the text of its other rankings, which are behind.
  return uniqueTexts(ranked)
}
