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
  /** Null when the question could not be embedded: then its words alone are looked for. */
  vector: Float32Array | null
  /** Epoch milliseconds; what "yesterday" is seen from. */
  now: number
  /** 1 to 500. */
  limit: number
  /** All of them, blended, when left out. */
  tiers?: readonly Tier[]
  /** Lowest importance, 1 to 10; rows without one are left out whenever it is set. */
  importance?: number
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
  /** Leave out whatever is not relevant, even if nothing remains. */
  floor: boolean
  /** Leave out rows with these texts, as if they were not there. */
  excludeTexts?: { has(textHash: number, textOf: () => string): boolean } | undefined
  calibration: Calibration
}

export type SearchHit = {
  memory: Memory
  /** Calibrated similarity, 0 to 1; without a vector the share of the question's words it names. */
  score: number
  /** What it was ranked by: 0 and up, comparable within one answer only. */
  relevance: number
  signals: Signals
  /** Index of the image it comes from. */
  indexNumber: number
}

/** Rows looked at closely, by meaning and by words each, beside those that are asked for. */
const candidatesMin = 48
/** When copies of the same texts fill the reach, it is widened by this factor. */
const candidateGrowth = 8

/** What its words, its own and lent, must share with the question to be relevant by them alone. */
const wordRelevanceFloor = 0.35
/** Beside a relevant row, others need only so much of the floor and of the best row's strength. */
const companionFloor = 0.35
const companionShare = 0.15

/**
 * What the images know about a question, best first, each text once (the newest copy of it).
 * Meaning, words, the turns around, times, names and freshness are fused into one relevance; of
 * near equals the newer wins, so memories never sink with age alone. Rows that have nothing to do
 * with the question are left out even without the floor. Decodes the texts of what it returns and
 * no others.
 */
export function rank(
  vaultIndexes: readonly VaultIndex[],
  query: SearchQuery,
  weights: RankingWeights = defaultWeights,
): SearchHit[] {
  const { text, vector, now, limit, calibration } = query
  const ranges = buildSearchRanges(vaultIndexes, query)
  if (limit < 1 || ranges.length === 0) return []
  const reading = parseSearchQuery(text, now)
  const wordIndexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const concepts = buildConcepts(reading.terms, wordIndexes, weights)
  const rankingQuery = { text, vector, now, calibration, reading, concepts, weights }

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

/** First sight is enough to rank by; the score that clients read and compare is exact. */
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

/** All rows worth it in order of relevance, each text once. */
function rankRows(
  ranges: readonly SearchRange[],
  rankingQuery: RankingQuery,
  { limit, excludeTexts }: Pick<SearchQuery, 'limit' | 'excludeTexts'>,
): ScoredRow[] {
  const isWanted = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
    !excludeTexts?.has(tierIndex.textHash(row), () => tierIndex.memory(row).text)
  for (let candidateCount = Math.max(candidatesMin, limit); ; candidateCount *= candidateGrowth) {
    const passes = ranges.map(place => scoreCandidates(place, rankingQuery, candidateCount))
    const scored = passes.flatMap(pass => pass.judged)
    const wanted = scored.filter(isWanted)
    boostByTimeOrder(wanted, rankingQuery.reading.order)
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
 * Nothing unless some row is surely relevant; then whatever is not much weaker than the best, since
 * a question that is answered once is mostly answered by several turns. What has nothing to do with
 * the question by itself comes along only as the reply to a row that is surely relevant.
 */
function filterRelevant(ranked: readonly ScoredRow[], rankingQuery: RankingQuery): ScoredRow[] {
  const strengths = ranked.map(judged => relevanceStrength(judged, rankingQuery))
  const best = Math.max(0, ...strengths)
  if (best < 1) return []
  const strengthMin = Math.max(companionFloor, best * companionShare)
  const ownStrengths = ranked.map(judged =>
    relevanceStrength(judged, rankingQuery, { lent: false }),
  )
  const relevantRows = Map.groupBy(
    ranked.filter((_, i) => ownStrengths[i]! >= 1),
    ({ range }) => range,
  )
  const isReply = ({ range, row }: ScoredRow) =>
    relevantRows.get(range)?.some(relevantRow => relevantRow.row === row - 1)
  return ranked.filter(
    (judged, i) => strengths[i]! >= strengthMin && (ownStrengths[i]! > 0 || isReply(judged)),
  )
}

/** 1 and up is relevant by itself. */
function relevanceStrength(
  { signals }: ScoredRow,
  { calibration, reading, concepts }: RankingQuery,
  { lent }: { lent: boolean } = { lent: true },
): number {
  const { similarity, words, context, time } = signals
  const strength =
    similarity / calibration.floor + (words + (lent ? context : 0)) / wordRelevanceFloor
  const asksOnlyTimeOrSpeaker = reading.nonTimeTerms.every(term =>
    concepts.speakerMarkers.includes(speakerMarker + term),
  )
  return asksOnlyTimeOrSpeaker ? strength + time : strength
}
