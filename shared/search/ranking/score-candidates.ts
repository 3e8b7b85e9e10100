import type { Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import {
  findCandidates,
  scanRange,
  type CandidateQuery,
} from '#shared/search/ranking/candidates.ts'
import type { Concepts } from '#shared/search/query/concepts.ts'
import {
  fuseSignals,
  type Signals,
  type RankingWeights,
} from '#shared/search/ranking/fuse-signals.ts'
import { answerTypeHints, questionHints, speakerHints } from '#shared/search/ranking/hints.ts'
import { findAttributeRows } from '#shared/search/ranking/attribute-rows.ts'
import { scoreContext } from '#shared/search/ranking/context-boost.ts'
import { findAdjacentTurns, type AdjacentTurns } from '#shared/search/ranking/adjacent-turns.ts'
import type { NearestRows } from '#shared/search/ranking/nearest-rows.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import { scoreWords } from '#shared/search/ranking/score-words.ts'

/** A candidate with its signals and relevance. */
export type ScoredRow = {
  range: SearchRange
  row: number
  at: number
  signals: Signals
  relevance: number
  /** It states what is asked for of a person: "Location: Berlin", "I live in Berlin". */
  statesAttribute?: boolean
}

export type RankingQuery = {
  text: string
  vector: Float32Array | null
  /** Null: only rows with its words, or of its times, are candidates. */
  nearestRows: NearestRows | null
  now: number
  calibration: Calibration
  parsedQuery: ParsedQuery
  concepts: Concepts
  weights: RankingWeights
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Tokens of a text with about two thirds of the maximal informativeness. */
const informativeTokens = 14

/** Longer texts name many things in passing. */
const usualTokens = 120

/** The best rows of a range, `complete` when they are all its rows. */
export type RangeScores = {
  scored: ScoredRow[]
  complete: boolean
  /** All rows with words of the query, among the best or not. */
  withWords: Uint32Array
}

/** Scores the best rows of a range, in short steps; the rows must not change before the last. */
export function* scoreCandidates(
  range: SearchRange,
  query: RankingQuery,
  candidateCount: number,
): Steps<RangeScores> {
  const { vector, nearestRows, parsedQuery } = query
  const { times } = parsedQuery
  const scanned = yield* scanRange(range, { vector, nearestRows, times, candidateCount })
  yield
  const { labels } = parsedQuery
  const attributeRows = labels ? yield* findAttributeRows(range, labels) : noRows
  const wordScores = yield* scoreWords(range, query.concepts)
  yield
  const found = { scanned, attributeRows, wordScores, candidateCount }
  const scores = scoreScanned(range, query, found)
  wordScores.release()
  return scores
}

type Scanned = Pick<CandidateQuery, 'scanned' | 'attributeRows' | 'wordScores' | 'candidateCount'>

function scoreScanned(
  range: SearchRange,
  query: RankingQuery,
  { scanned, attributeRows, wordScores, candidateCount }: Scanned,
): RangeScores {
  const { parsedQuery, concepts, vector, calibration, weights, now } = query
  const { tierIndex, first } = range
  const { times } = parsedQuery
  const adjacent = findAdjacentTurns(range)
  const { rows, cosines, complete } = findCandidates(range, adjacent, {
    vector,
    scanned,
    wordScores,
    times,
    attributeRows,
    candidateCount,
  })
  const matching = wordScores.matchingRows.map(distance => first + distance)
  const withWords = range.allowsAll ? matching : matching.filter(row => range.allows(row))
  if (rows.length === 0) return { scored: [], complete, withWords }
  const similarities = vector
    ? cosines.map(cosine => scoreFromCosine(cosine, calibration))
    : cosines
  const context = scoreContext(range, adjacent, wordScores, rows, similarities)
  const speakerMatches = speakerHints(range, rows, query)
  const answerTypes = answerTypeHints(range, rows, parsedQuery)
  const questions = questionHints(range, rows)
  const share = (score: number) =>
    concepts.maxTotal > 0 ? Math.min(1, score / concepts.maxTotal) : 0

  const scored: ScoredRow[] = []
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    const at = tierIndex.timeAt(row)
    const statesAttribute = attributeRows.has(row)
    const signals: Signals = {
      similarity: similarities[i]!,
      words: statesAttribute ? 1 : share(wordScores.totals[row - first]!),
      context:
        weights.contextWords * share(context.words[i]!) +
        weights.contextSimilarity * context.similarity[i]!,
      time: isWithin(at, times) ? 1 : 0,
      speakerMatch: speakerMatches[i]!,
      answerType: answerTypes[i]!,
      recency: recencyScore(now - at),
      question: questions[i]! * repetitionOf(share(wordScores.totals[row - first]!)),
      informativeness: statesAttribute ? 1 : informativenessOf(tierIndex.tokens(row), weights),
    }
    scored.push({
      range,
      row,
      at,
      signals,
      relevance: fuseSignals(signals, weights),
      statesAttribute,
    })
  }
  capBoostedScores(scored, adjacent, weights)
  return { scored, complete, withWords }
}

const noRows: ReadonlySet<number> = new Set()

function informativenessOf(tokens: number, { longText }: RankingWeights): number {
  const filled = 1 - Math.exp(-tokens / informativeTokens)
  return tokens > usualTokens ? filled * (usualTokens / tokens) ** longText : filled
}

/** How much of a question repeats what is asked, by its share of the words: 0 up to half of them. */
const repetitionOf = (words: number): number => Math.max(0, 2 * words - 1)

/** A row with less than this of its own is a candidate for its context only. */
const ownScoreMin = 0.1

/** Caps a row that scores by context alone just below the best row of that context. Rows ascend. */
function capBoostedScores(
  scored: readonly ScoredRow[],
  adjacent: AdjacentTurns,
  weights: RankingWeights,
) {
  const ownScore = ({ signals }: ScoredRow) => signals.similarity + weights.words * signals.words
  for (const [i, boosted] of scored.entries()) {
    const own = ownScore(boosted)
    if (own >= ownScoreMin || boosted.signals.context <= 0) continue
    const from = adjacent.firstContextRow(boosted.row)
    const to = adjacent.lastContextRow(boosted.row)
    let bestContext = 0
    const compare = (other: ScoredRow) => {
      if (ownScore(other) > own) bestContext = Math.max(bestContext, other.relevance)
    }
    for (let j = i - 1; j >= 0 && scored[j]!.row >= from; j--) compare(scored[j]!)
    for (let j = i + 1; j < scored.length && scored[j]!.row <= to; j++) compare(scored[j]!)
    if (bestContext > 0)
      boosted.relevance = Math.min(boosted.relevance, bestContext * boostedScoreRatio)
  }
}

/** Just below 1: of equal relevance the newer row would come first. */
const boostedScoreRatio = 0.999

function isWithin(at: number, times: readonly TimeSpan[]): boolean {
  for (const { from, to } of times) if (at >= from && at < to) return true
  return false
}

/** From 1 down with age; weighted to decide between near equals only. */
function recencyScore(ageMs: number): number {
  if (ageMs < 4 * HOUR_MS) return 1
  if (ageMs < 3 * DAY_MS) return 0.6
  return 0.3 * Math.exp(-ageMs / (60 * DAY_MS))
}
