import type { Calibration } from '#shared/domain/embedder.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import { blendTiers } from '#shared/search/ranking/blend.ts'
import { buildConcepts } from '#shared/search/query/concepts.ts'
import {
  defaultWeights,
  type Signals,
  type RankingWeights,
} from '#shared/search/ranking/fuse-signals.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import {
  scoreCandidates,
  type RankingQuery,
  type ScoredRow,
} from '#shared/search/ranking/score-candidates.ts'
import { boostByTimeOrder } from '#shared/search/ranking/boost-by-time.ts'
import { buildSearchRanges, type SearchRange } from '#shared/search/ranking/search-range.ts'
import { parseSearchQuery } from '#shared/search/query/parse-query.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import { uniqueTexts } from '#shared/search/ranking/unique-texts.ts'
import { speakerMarker } from '#shared/search/words/index-terms.ts'

export type SearchQuery = {
  text: string
  /** Null when the query could not be embedded: then it is ranked by words alone. */
  vector: Float32Array | null
  /** Epoch milliseconds; "yesterday" is relative to it. */
  now: number
  /** 1 to 500. */
  limit: number
  /** Default: all tiers, blended. */
  tiers?: readonly Tier[]
  /** Lowest importance, 1 to 10; rows without one are left out whenever it is set. */
  importance?: number
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
  /** Leave out what is not relevant, even if nothing remains. */
  floor: boolean
  /** Ignore rows with these texts. */
  excludeTexts?: { has(textHash: number, textOf: () => string): boolean } | undefined
  calibration: Calibration
}

export type SearchHit = {
  memory: Memory
  /** Calibrated similarity, 0 to 1; without a query vector the `words` signal. */
  score: number
  /** Ranking value: 0 and up, comparable within one result only. */
  relevance: number
  signals: Signals
  /** Position of its vault index among those searched. */
  indexNumber: number
}

/** Least number of candidates by vector and by words each. */
const candidatesMin = 48
/** Growth of the number of candidates when duplicates fill them. */
const candidateGrowth = 8

/** Words and context signals of a row that is relevant by them alone. */
const wordRelevanceFloor = 0.35
/** Beside a relevant row, others need this share of the floor and of the best row's strength. */
const companionFloor = 0.35
const companionShare = 0.15

/**
 * The most relevant memories of the indexes for a query, best first, each text once (its newest
 * copy). Similarity, words, context, times, names and recency are fused into one relevance; age only
 * decides between near equals. Rows without any match are left out even without the floor. Only the
 * texts of the result are decoded.
 */
export function rank(
  vaultIndexes: readonly VaultIndex[],
  query: SearchQuery,
  weights: RankingWeights = defaultWeights,
): SearchHit[] {
  const { text, vector, now, limit, calibration } = query
  const ranges = buildSearchRanges(vaultIndexes, query)
  if (limit < 1 || ranges.length === 0) return []
  const parsedQuery = parseSearchQuery(text, now)
  const wordIndexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const concepts = buildConcepts(parsedQuery.terms, wordIndexes, weights)
  const rankingQuery = { text, vector, now, calibration, parsedQuery, concepts, weights }

  const all = rankRows(ranges, rankingQuery, query)
  const ranked = query.floor ? filterRelevant(all, rankingQuery) : all.filter(isRelated)
  const chosen = query.tiers ? ranked.slice(0, limit) : blendTiers(ranked, limit)
  if (vector) rescore(chosen, vector, calibration)
  return chosen.map(({ range, row, relevance, signals }) => ({
    memory: range.tierIndex.memory(row),
    score: vector ? signals.similarity : signals.words,
    relevance,
    signals,
    indexNumber: range.indexNumber,
  }))
}

/** Ranking uses approximate cosines; the score in the response is exact. */
function rescore(chosen: readonly ScoredRow[], vector: Float32Array, calibration: Calibration) {
  for (const [{ tierIndex }, rows] of Map.groupBy(chosen, ({ range }) => range)) {
    const cosines = tierIndex.cosines(
      vector,
      rows.map(({ row }) => row),
    )
    rows.forEach(
      ({ signals }, i) => (signals.similarity = scoreFromCosine(cosines[i]!, calibration)),
    )
  }
}

/** The candidates of all ranges in order of relevance, each text once. */
function rankRows(
  ranges: readonly SearchRange[],
  rankingQuery: RankingQuery,
  { limit, excludeTexts }: Pick<SearchQuery, 'limit' | 'excludeTexts'>,
): ScoredRow[] {
  const isWanted = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
    !excludeTexts?.has(tierIndex.textHash(row), () => tierIndex.memory(row).text)
  for (let candidateCount = Math.max(candidatesMin, limit); ; candidateCount *= candidateGrowth) {
    const passes = ranges.map(range => scoreCandidates(range, rankingQuery, candidateCount))
    const scored = passes.flatMap(pass => pass.scored)
    const wanted = scored.filter(isWanted)
    boostByTimeOrder(wanted, rankingQuery.parsedQuery.order)
    wanted.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
    const unique = uniqueTexts(wanted)
    const saturatedByDuplicates = unique.length < limit && unique.length < scored.length
    if (!saturatedByDuplicates || passes.every(pass => pass.complete)) return unique
  }
}

function isRelated({ signals }: ScoredRow): boolean {
  const { similarity, words, context, time } = signals
  return similarity > 0 || words > 0 || context > 0 || time > 0
}

/**
 * Empty unless some row is relevant by itself; then all rows that are not much weaker than the best,
 * since most answers spread over several turns. A row without a match of its own is included only as
 * the reply to a row that is relevant without context.
 */
function filterRelevant(ranked: readonly ScoredRow[], rankingQuery: RankingQuery): ScoredRow[] {
  const strengths = ranked.map(scored => relevanceStrength(scored, rankingQuery))
  const best = Math.max(0, ...strengths)
  if (best < 1) return []
  const strengthMin = Math.max(companionFloor, best * companionShare)
  const ownStrengths = ranked.map(scored =>
    relevanceStrength(scored, rankingQuery, { withContext: false }),
  )
  const relevantRows = Map.groupBy(
    ranked.filter((_, i) => ownStrengths[i]! >= 1),
    ({ range }) => range,
  )
  const isReply = ({ range, row }: ScoredRow) =>
    relevantRows.get(range)?.some(relevantRow => relevantRow.row === row - 1)
  return ranked.filter(
    (scored, i) => strengths[i]! >= strengthMin && (ownStrengths[i]! > 0 || isReply(scored)),
  )
}

/** 1 and up: relevant by itself. */
function relevanceStrength(
  { signals }: ScoredRow,
  { calibration, parsedQuery, concepts }: RankingQuery,
  { withContext }: { withContext: boolean } = { withContext: true },
): number {
  const { similarity, words, context, time } = signals
  const strength =
    similarity / calibration.floor + (words + (withContext ? context : 0)) / wordRelevanceFloor
  const asksOnlyTimeOrSpeaker = parsedQuery.nonTimeTerms.every(term =>
    concepts.speakerMarkers.includes(speakerMarker + term),
  )
  return asksOnlyTimeOrSpeaker ? strength + time : strength
}
