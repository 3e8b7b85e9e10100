import type { Calibration } from '#shared/domain/embedder.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import { findCandidates } from '#shared/search/ranking/candidates.ts'
import type { Concepts } from '#shared/search/query/concepts.ts'
import {
  fuseSignals,
  type Signals,
  type RankingWeights,
} from '#shared/search/ranking/fuse-signals.ts'
import { answerTypeHints, speakerHints } from '#shared/search/ranking/hints.ts'
import { scoreContext } from '#shared/search/ranking/context-boost.ts'
import { findAdjacentTurns, type AdjacentTurns } from '#shared/search/ranking/adjacent-turns.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import { scoreWords } from '#shared/search/ranking/score-words.ts'

/** A row that may be an answer, and what speaks for it. */
export type ScoredRow = {
  range: SearchRange
  row: number
  at: number
  signals: Signals
  relevance: number
}

export type RankingQuery = {
  text: string
  vector: Float32Array | null
  now: number
  calibration: Calibration
  reading: ParsedQuery
  concepts: Concepts
  weights: RankingWeights
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A text of so many tokens can tell about two thirds of what a text can tell at all. */
const informativeTokens = 14

/** Judges the best rows of a place; `complete` when there is no other row it could have judged. */
export function scoreCandidates(
  range: SearchRange,
  query: RankingQuery,
  candidateCount: number,
): { judged: ScoredRow[]; complete: boolean } {
  const { reading, concepts, vector, calibration, weights, now } = query
  const { tierIndex, first } = range
  const { times } = reading
  const wordScores = scoreWords(range, concepts.matched)
  const adjacent = findAdjacentTurns(range)
  const { rows, cosines, complete } = findCandidates(range, adjacent, {
    vector,
    wordScores,
    times,
    candidateCount,
  })
  const similarities = vector
    ? cosines.map(cosine => scoreFromCosine(cosine, calibration))
    : cosines
  const context = scoreContext(range, adjacent, wordScores, rows, similarities)
  const speakerMatches = speakerHints(range, rows, query)
  const answerTypes = answerTypeHints(range, rows, reading)
  const share = (worth: number) =>
    concepts.maxTotal > 0 ? Math.min(1, worth / concepts.maxTotal) : 0

  const judged: ScoredRow[] = []
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    const at = tierIndex.timeAt(row)
    const signals: Signals = {
      similarity: similarities[i]!,
      words: share(wordScores.totals[row - first]!),
      context:
        weights.contextWords * share(context.words[i]!) +
        weights.contextSimilarity * context.similarity[i]!,
      time: isWithin(at, times) ? 1 : 0,
      speakerMatch: speakerMatches[i]!,
      answerType: answerTypes[i]!,
      recency: recencyScore(now - at),
      informativeness: 1 - Math.exp(-tierIndex.tokens(row) / informativeTokens),
    }
    judged.push({ range, row, at, signals, relevance: fuseSignals(signals, weights) })
  }
  capBoostedScores(judged, adjacent, weights)
  return { judged, complete }
}

/** Less than this of its own, and a row is there for what was said around it. */
const ownScoreMin = 0.1

/** What a row borrowed may bring it up to whoever lent it, never past. Rows ascend. */
function capBoostedScores(
  judged: readonly ScoredRow[],
  adjacent: AdjacentTurns,
  weights: RankingWeights,
) {
  const ownScore = ({ signals }: ScoredRow) => signals.similarity + weights.words * signals.words
  for (const [i, boosted] of judged.entries()) {
    const own = ownScore(boosted)
    if (own >= ownScoreMin || boosted.signals.context <= 0) continue
    const from = adjacent.firstContextRow(boosted.row)
    const to = adjacent.lastContextRow(boosted.row)
    let bestContext = 0
    const consider = (other: ScoredRow) => {
      if (ownScore(other) > own) bestContext = Math.max(bestContext, other.relevance)
    }
    for (let j = i - 1; j >= 0 && judged[j]!.row >= from; j--) consider(judged[j]!)
    for (let j = i + 1; j < judged.length && judged[j]!.row <= to; j++) consider(judged[j]!)
    if (bestContext > 0)
      boosted.relevance = Math.min(boosted.relevance, bestContext * boostedScoreRatio)
  }
}

/** Just behind: of two equals the newer would come first. */
const boostedScoreRatio = 0.999

function isWithin(at: number, times: readonly TimeSpan[]): boolean {
  for (const { from, to } of times) if (at >= from && at < to) return true
  return false
}

/** Only decides between near equals: an old memory that fits better wins at any age. */
function recencyScore(ageMs: number): number {
  if (ageMs < 4 * HOUR_MS) return 1
  if (ageMs < 3 * DAY_MS) return 0.6
  return 0.3 * Math.exp(-ageMs / (60 * DAY_MS))
}
