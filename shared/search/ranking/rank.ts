import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import type { Memory } from '#shared/domain/memory.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import { buildConcepts } from '#shared/search/query/concepts.ts'
import { asksOfNames, namedSubjects } from '#shared/search/query/named-subjects.ts'
import {
  parseSearchQuery,
  parseStatement,
  type ParsedQuery,
} from '#shared/search/query/parse-query.ts'
import { isAsking, questionKind } from '#shared/search/query/sentence-kinds.ts'
import type { Question } from '#shared/search/query/select-questions.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { createEvidence } from '#shared/search/ranking/answer-evidence.ts'
import { nearestRowsOf } from '#shared/search/ranking/candidates.ts'
import {
  blendTiers,
  copiesOfRows,
  countMatching,
  fuseRankings,
  sameTextFirst,
  scoreRows,
  type QuestionRanking,
  type RankedRow,
} from '#shared/search/ranking/fusion.ts'
import {
  buildSearchRanges,
  judgeRows,
  calibrateForVault,
  scoreFromCosine,
  type SearchBounds,
  type SearchRange,
} from '#shared/search/ranking/ranges.ts'
import { personRows, rankByKind } from '#shared/search/ranking/rank-by-kind.ts'
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
import { markSuperseded } from '#shared/search/ranking/superseded.ts'
import { asksSmallWords, smallWordsFirst } from '#shared/search/ranking/small-words.ts'
import {
  defaultWeights,
  isContext,
  isRelated,
  scoreOf,
  type RankingWeights,
  type Signals,
} from '#shared/search/ranking/signals.ts'
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
    query?: string
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

export type SearchQuery = SearchOptions & {
  text: string
  /** Null when the query could not be embedded: then it is ranked by words alone. */
  vector: Float32Array | null
}

export type SearchHit = {
  memory: Memory
  /** 0 to 1, without the turns around it: see `scoreOf`. Without the floor in the order of the hits. */
  score: number
  /** Cosine of its vector and that of the query; undefined when the query has none. */
  similarity: number | undefined
  /** Ranking value: 0 and up. */
  relevance: number
  /** How well it fits the question; from 1 on it is relevant by itself. */
  strength: number
  /** Log odds that it answers the only question, where that is known. */
  evidence?: number | undefined
  signals: Signals
  /** Memories with its text, of which it is the newest; 1 where they are not counted. */
  copies: number
  /** The newest memory that says otherwise of the same thing. */
  supersededBy?: string | undefined
  /** The memories of these hits that it supersedes. */
  supersedes?: readonly string[] | undefined
  /** Position of its vault index among those searched. */
  indexNumber: number
}

/**
 * Ranks the memories of the indexes for a query, best first, each text once (its newest copy). Similarity, words,
 * context, times, names and recency are fused into one relevance; age only decides between near equals. Rows without
 * any match are left out even without the floor. Only the texts of the result are decoded.
 */
export function rank(
  vaultIndexes: readonly VaultIndex[],
  { text, vector, ...bounds }: SearchQuery,
  weights: RankingWeights = defaultWeights,
): SearchHit[] {
  return rankQuestions(vaultIndexes, [{ text, vector, kind: 'whole' }], { ...bounds, weights })
}

/** A part of a message with its vector; null where it is ranked by words alone. */
export type EmbeddedQuestion = Question & { vector: Float32Array | null }

/**
 * Ranks for each part of a message, each with a floor of its own, and fuses the results: a row has the relevance of the
 * part that it fits best. All vectors are compared in one pass; a statement where another part asks needs rows with
 * its words, so its vector is compared with these only.
 */
export function rankQuestions(
  vaultIndexes: readonly VaultIndex[],
  questions: readonly EmbeddedQuestion[],
  search: SearchOptions,
): SearchHit[] {
  const ranges = buildSearchRanges(vaultIndexes, search)
  return runAtOnce(rankRanges(ranges, questions, search))
}

/** A vault that changes all the time is ranked in one slice after so many attempts. */
const attemptsMax = 1
/**
 * A ranking has so much of its first slice: one that is paused in a vault that is written to begins again. With 16 calls
 * at once that read and store, 4 ms and two attempts cost a call twice the CPU.
 */
const firstSliceMs = 10

/**
 * Does the same as `rankQuestions` in several slices of the event loop. When an index changes between two slices the
 * ranking begins again, so that it never has a removed row or rows of different states.
 *
 * @param openIndexes returns the indexes to rank; called again after a change
 */
export async function rankInTurns(
  openIndexes: () => Promise<readonly VaultIndex[]>,
  questions: readonly EmbeddedQuestion[],
  search: SearchOptions,
): Promise<SearchHit[]> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const steps = rankingSteps(await openIndexes(), questions, search)
    const hits = await runInSlices(steps, { firstMs: firstSliceMs })
    if (hits) return hits
  }
  return runAtOnce(rankingSteps(await openIndexes(), questions, search)) ?? []
}

/** Ranks in steps of a millisecond or less. @returns undefined when an index changed between two steps */
export function* rankingSteps(
  vaultIndexes: readonly VaultIndex[],
  questions: readonly EmbeddedQuestion[],
  search: SearchOptions,
): Steps<SearchHit[] | undefined> {
  const ranges = buildSearchRanges(vaultIndexes, search)
  const versions = ranges.map(({ tierIndex }) => tierIndex.version)
  const steps = rankRanges(ranges, questions, search)
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
  { limit: wanted, weights = defaultWeights, ...options }: SearchOptions,
): Steps<SearchHit[]> {
  const limit = ranges.reduce((sum, { first, end }) => Math.min(wanted, sum + end - first), 0)
  const matching = countMatching(options.onMatchCount)
  const search = { ...options, limit, onMatching: matching.add }
  const { now } = search
  const calibrationOf = calibrateForVault(ranges, search.calibration)
  if (limit < 1) return []
  yield* judgeRows(ranges)
  const wordIndexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const asks = questions.some(({ kind }) => kind === 'asking')
  const scanned = questions.filter(({ kind }) => !(kind === 'statement' && asks))
  const nearestOfAll = nearestRowsOf(
    scanned.flatMap(({ vector }) => vector ?? []),
    firstCandidateCount(limit),
  )
  const isAlone = questions.filter(({ kind }) => kind !== 'name').length === 1
  const { minScore = 0 } = search
  let emptyTimes = 0
  let hasClearMatch = false
  const withoutFiller = (found: ScoredRow[], query: RankingQuery): ScoredRow[] => {
    if (!isNamedTimeEmpty(ranges, query.parsedQuery, now)) return found
    emptyTimes++
    return keepClearMatches(found, query, ranges)
  }
  const parsedOf = new Map<EmbeddedQuestion, ParsedQuery>()
  const rankQuestion = function* (question: EmbeddedQuestion): Steps<QuestionRanking | undefined> {
    const { text, vector, kind } = question
    const isScanned = scanned.includes(question)
    const parsedQuery = isScanned ? parseSearchQuery(text, now) : parseStatement(text)
    parsedOf.set(question, parsedQuery)
    if (kind === 'name' && !isRareName(parsedQuery, wordIndexes)) return
    const concepts = buildConcepts(parsedQuery.terms, wordIndexes, weights, { few: !isScanned })
    const nearestRows = isScanned ? nearestOfAll : null
    const calibration = calibrationOf(vector)
    const isOpen = asksOnlyTimeOrSpeaker(parsedQuery, concepts)
    const read = { text, vector, nearestRows, now, calibration }
    const asksQuestion = search.floor || isAsking(text)
    const query: RankingQuery = { ...read, parsedQuery, concepts, isOpen, asksQuestion, weights }
    const asksOfItself = isScanned && kind !== 'name'
    const wantedKind = asksOfItself ? questionKind(text) : undefined
    if (wantedKind === 'self' && !search.everyRow) {
      const others = search.floor ? [] : yield* rankRows(ranges, query, search)
      return yield* personRows(ranges, search, query, others.filter(isRelated))
    }
    // Some of several sentences in one question only introduce the subject.
    const isWeighed =
      search.floor && (kind === 'asking' || (isAlone && splitSentences(text).length === 1))
    const evidenceOf = isWeighed ? createEvidence(query) : undefined
    const names = asksOfItself ? namedSubjects(text) : []
    const isNamed = asksOfNames(text, names, parsedQuery) ? rowsThatName(names) : undefined
    const relevance = { floor: floorOf(text, kind, asks), evidenceOf, isNamed }
    const found = yield* rankRows(ranges, query, search)
    const all =
      !search.floor && asksSmallWords(parsedQuery)
        ? yield* smallWordsFirst(ranges, query, found, search)
        : found
    const relevant = search.floor
      ? withoutFiller(filterRelevant(all, query, relevance), query)
      : all.filter(row => search.everyRow === true || isRelated(row))
    // By its score in a search.
    const lost = isAsking(text) ? 0 : weights.question
    const isClearMatch = ({ relevance, ownShare, signals }: ScoredRow): boolean =>
      !isContext(signals) &&
      scoreOf({ relevance: relevance / (1 - lost * signals.question), ownShare }) >=
        Math.max(minScore, clearScore)
    hasClearMatch ||= search.floor && all.some(isClearMatch)
    const weight = kind === 'statement' && !asks ? 1 : tuned.parts[kind]
    const toRanked = (row: ScoredRow): RankedRow => ({
      ...row,
      strength: relevanceStrength(row, query) * (kind === 'asking' ? 1 : weight),
      weigh: () => (isAlone ? evidenceOf?.(row) : undefined),
      vector,
    })
    return { rows: rankByKind(relevant, wantedKind), weight, toRanked }
  }
  const rankings: QuestionRanking[] = []
  for (const question of questions) {
    const ranking = yield* rankQuestion(question)
    if (ranking) rankings.push(ranking)
    yield
  }
  yield* matching.report()
  const fused = fuseRankings(rankings, ranges, questions.length === 1)
  const ranked = search.query === undefined ? fused : sameTextFirst(fused, search.query)
  const eligible =
    minScore > 0
      ? ranked.filter(row => !isContext(row.scored.signals) && scoreOf(row) >= minScore)
      : ranked
  if (emptyTimes > 0) search.onAbstain?.('nothing_then')
  else if (eligible.length === 0 && hasClearMatch) search.onAbstain?.('no_answer')
  const [asked] = questions
  const ordered =
    asked && !search.everyRow
      ? markSuperseded(eligible, asked.text, parsedOf.get(asked)!, search)
      : eligible
  const chosen = (search.tiers ? ordered.slice(0, limit) : blendTiers(ordered, limit)).map(
    ({ ranking, scored, relevance, ownShare, twins, newest }): RankedRow => ({
      ...ranking.toRanked(scored),
      relevance,
      ownShare,
      twins,
      newest,
    }),
  )
  const isCertain =
    chosen.length <= tuned.evidence.weighedRowsMax &&
    chosen.slice(0, tuned.evidence.certainRowsMax).some(isCertainAnswer)
  const cosines = rescore(chosen, calibrationOf)
  const scores = scoreRows(chosen)
  const copies = search.floor || search.everyRow ? [] : yield* copiesOfRows(chosen)
  const hits = chosen.map(
    ({ range, row, relevance, strength, weigh, signals, newest }, i): SearchHit => ({
      memory: range.tierIndex.memory(row),
      score: scores[i]!,
      similarity: cosines[i],
      relevance,
      strength,
      evidence: isCertain ? weigh?.() : undefined,
      signals,
      copies: copies[i] ?? 1,
      indexNumber: range.indexNumber,
      supersededBy: newest?.range.tierIndex.memory(newest.row).id,
    }),
  )
  const superseded = Map.groupBy(hits, hit => hit.supersededBy)
  const told = superseded.size < 2 ? hits : hits.map(hit => withSuperseded(hit, superseded))
  return search.floor ? told : told.sort((one, other) => other.score - one.score)
}

/** Score from which on a search says that a row matches by itself. */
const clearScore = 0.5

function withSuperseded(
  hit: SearchHit,
  superseded: ReadonlyMap<string | undefined, readonly SearchHit[]>,
): SearchHit {
  const older = superseded.get(hit.memory.id)
  return older ? { ...hit, supersedes: older.map(({ memory }) => memory.id) } : hit
}

const isCertainAnswer = ({ weigh }: RankedRow): boolean =>
  (weigh?.() ?? -1) >= tuned.evidence.certain

/**
 * Computes exact cosines of the chosen rows, which were ranked by approximate ones, and writes their scores into the
 * signals. @returns the cosines, in order
 */
function rescore(
  chosen: readonly RankedRow[],
  calibrationOf: (vector: Float32Array) => Calibration,
): (number | undefined)[] {
  const cosineOf = new Map<RankedRow, number>()
  for (const [vector, ofQuestion] of Map.groupBy(chosen, row => row.vector)) {
    if (!vector) continue
    const calibration = calibrationOf(vector)
    for (const [{ tierIndex }, found] of Map.groupBy(ofQuestion, ({ range }) => range)) {
      const rows = found.map(({ row }) => row)
      const cosines = tierIndex.cosines(vector, rows)
      for (const [i, row] of found.entries()) {
        row.signals.similarity = scoreFromCosine(cosines[i]!, calibration)
        cosineOf.set(row, cosines[i]!)
      }
    }
  }
  return chosen.map(row => cosineOf.get(row))
}
