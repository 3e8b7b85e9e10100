import type { Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import {
  findCandidates,
  scanRange,
  type CandidateQuery,
  findAttributeRows,
  type NearestRows,
} from '#shared/search/ranking/candidates.ts'
import type { Concepts } from '#shared/search/query/concepts.ts'
import {
  fuseSignals,
  type Signals,
  type RankingWeights,
  answerTypeHints,
  questionHints,
  speakerHints,
  isRelated,
} from '#shared/search/ranking/signals.ts'
import {
  scoreContext,
  findAdjacentTurns,
  type AdjacentTurns,
} from '#shared/search/ranking/context.ts'
import { type SearchRange, scoreFromCosine } from '#shared/search/ranking/ranges.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { rowsWithWords, scoreWords, type WordScores } from '#shared/search/ranking/score-words.ts'
import { speakerMarker } from '#shared/search/words/index-terms.ts'

/** A candidate with its signals and relevance. */
export type ScoredRow = {
  range: SearchRange
  row: number
  at: number
  signals: Signals
  relevance: number
  /** Whether it states what is asked for of a person: "Location: Berlin", "I live in Berlin". */
  statesAttribute?: boolean
}

export type RankingQuery = {
  text: string
  vector: Float32Array | null
  /** Null: no scan, candidates by words and times only. */
  nearestRows: NearestRows | null
  now: number
  calibration: Calibration
  parsedQuery: ParsedQuery
  concepts: Concepts
  weights: RankingWeights
}

/** Whether a question names nothing but times and people: "what happened in July". */
export const asksOnlyTimeOrSpeaker = ({
  parsedQuery,
  concepts,
}: Pick<RankingQuery, 'parsedQuery' | 'concepts'>): boolean =>
  parsedQuery.nonTimeTerms.every(term => concepts.speakerMarkers.includes(speakerMarker + term))

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Tokens of a text with about two thirds of the greatest informativeness. */
const informativeTokens = 14

/** Tokens beyond which a text names many things in passing. */
const usualTokens = 120

type RangeScores = {
  scored: ScoredRow[]
  /** Whether all rows of the range are scored. */
  complete: boolean
}

/** Scores the best rows of a range, in short steps; the rows must not change before the last. */
function* scoreCandidates(
  range: SearchRange,
  query: RankingQuery,
  { candidateCount, wordScores }: Pick<CandidateQuery, 'candidateCount' | 'wordScores'>,
): Steps<RangeScores> {
  const { vector, nearestRows, parsedQuery } = query
  const { times } = parsedQuery
  const scanned = yield* scanRange(range, { vector, nearestRows, times, candidateCount })
  yield
  const { labels } = parsedQuery
  const attributeRows = labels ? yield* findAttributeRows(range, labels) : noRows
  yield
  return scoreScanned(range, query, { scanned, attributeRows, wordScores, candidateCount })
}

type Scanned = Pick<CandidateQuery, 'scanned' | 'attributeRows' | 'wordScores' | 'candidateCount'>

function scoreScanned(
  range: SearchRange,
  query: RankingQuery,
  { scanned, attributeRows, wordScores, candidateCount }: Scanned,
): RangeScores {
  const { parsedQuery, concepts, vector, calibration, weights, now } = query
  const { tierIndex } = range
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
  const { positions, totals } = wordScores
  if (rows.length === 0) return { scored: [], complete }
  const similarities = vector
    ? cosines.map(cosine => scoreFromCosine(cosine, calibration))
    : cosines
  const context = scoreContext(adjacent, wordScores, rows, similarities)
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
      words: statesAttribute ? 1 : share(totals[positions.of(row)]!),
      context:
        weights.contextWords * share(context.words[i]!) +
        weights.contextSimilarity * context.similarity[i]!,
      time: isWithin(at, times) ? 1 : 0,
      speakerMatch: speakerMatches[i]!,
      answerType: answerTypes[i]!,
      recency: recencyScore(now - at),
      question: questions[i]! * repetitionOf(share(totals[positions.of(row)]!)),
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
  return { scored, complete }
}

const noRows: ReadonlySet<number> = new Set()

function informativenessOf(tokens: number, { longText }: RankingWeights): number {
  const filled = 1 - Math.exp(-tokens / informativeTokens)
  return tokens > usualTokens ? filled * (usualTokens / tokens) ** longText : filled
}

/** Maps the share of the query's words in a question to how much it repeats: 0 up to half of them. */
const repetitionOf = (words: number): number => Math.max(0, 2 * words - 1)

/** Own score below which a row is a candidate for its context only. */
const ownScoreMin = 0.1

/** Caps each row that scores by context alone just below the best row of that context. Rows ascend. */
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

/** Falls from 1 with age; weighted to decide between near equals only. */
function recencyScore(ageMs: number): number {
  if (ageMs < 4 * HOUR_MS) return 1
  if (ageMs < 3 * DAY_MS) return 0.6
  return 0.3 * Math.exp(-ageMs / (60 * DAY_MS))
}

/** Which rows are wanted, and how many. */
export type RowLimits = {
  /** 1 to 500, or Infinity. */
  limit: number
  /** Include rows that do not match, and all rows of identical texts. */
  everyRow?: boolean
  /** Called with the rows of a range that match, beyond the limit too; a row may come again. */
  onMatching?: ((range: SearchRange, rows: Iterable<number>) => void) | undefined
  /** Ignore rows with these texts. */
  excludeTexts?: { has(textHash: number, textOf: () => string): boolean } | undefined
}

/** Least number of candidates by vector and by words each. */
const candidatesMin = 48
export const firstCandidateCount = (limit: number): number => Math.max(candidatesMin, limit)
/** Growth of the number of candidates when rows that are left out fill them. */
const candidateGrowth = 8

export const isNotExcluded =
  ({ excludeTexts }: Pick<RowLimits, 'excludeTexts'>) =>
  ({ range: { tierIndex }, row }: ScoredRow): boolean =>
    !excludeTexts?.has(tierIndex.textHash(row), () => tierIndex.memory(row).text)

/**
 * Ranks the candidates of all ranges by relevance, each text once. In short steps; the rows must not change before
 * the last.
 *
 * @param floor fold the pieces of a long message into the best ones, as a block for a prompt wants it
 */
export function* rankRows(
  ranges: readonly SearchRange[],
  rankingQuery: RankingQuery,
  { limit, excludeTexts, floor, everyRow, onMatching }: RowLimits & { floor: boolean },
): Steps<ScoredRow[]> {
  const isWanted = isNotExcluded({ excludeTexts })
  const words: WordScores[] = []
  for (const range of ranges) words.push(yield* scoreWords(range, rankingQuery.concepts))
  yield
  for (let candidateCount = firstCandidateCount(limit); ; candidateCount *= candidateGrowth) {
    const passes: RangeScores[] = []
    for (const [i, range] of ranges.entries()) {
      const search = { candidateCount, wordScores: words[i]! }
      const pass = yield* scoreCandidates(range, rankingQuery, search)
      passes.push(pass)
      onMatching?.(range, rowsWithWords(words[i]!))
      const related = pass.scored.filter(isRelated)
      onMatching?.(
        range,
        related.map(({ row }) => row),
      )
      yield
    }
    const scored = passes.flatMap(pass => pass.scored)
    const wanted = scored.filter(isWanted)
    boostByTimeOrder(wanted, rankingQuery.parsedQuery.order)
    wanted.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
    const found = everyRow ? wanted : uniqueTexts(wanted)
    const unique = floor ? foldPieces(found) : found
    const isSaturated = unique.length < limit && unique.length < scored.length
    if (!isSaturated || passes.every(pass => pass.complete)) {
      for (const scores of words) scores.release()
      return unique
    }
  }
}

/** Number of best rows that are boosted. */
const boostedRowsMax = 20
const boostMax = 0.15

/**
 * Raises the relevance of the later of the best rows by up to 15 % when a query asks for the latest state, of the
 * earlier ones when it asks for the first. Modifies `rows`.
 */
function boostByTimeOrder(rows: ScoredRow[], order: 'latest' | 'first' | undefined) {
  if (!order) return
  const best = rows.toSorted((a, b) => b.relevance - a.relevance).slice(0, boostedRowsMax)
  best.sort((a, b) => (order === 'latest' ? a.at - b.at : b.at - a.at))
  for (const [position, row] of best.entries())
    row.relevance *= 1 + (boostMax * position) / boostedRowsMax
}

/**
 * Removes duplicates: of identical texts the newest row stays, with the relevance of the best. Argument and result
 * are in order of relevance.
 */
export function uniqueTexts<Row extends ScoredRow>(ranked: readonly Row[]): Row[] {
  const positions = new Map<number, number>()
  const unique: Row[] = []
  for (const scored of ranked) {
    const hash = scored.range.tierIndex.textHash(scored.row)
    const index = positions.get(hash)
    const known = index === undefined ? undefined : unique[index]
    if (index === undefined || !known) {
      positions.set(hash, unique.length)
      unique.push(scored)
    } else if (isNewer(scored, known)) {
      unique[index] = { ...scored, relevance: known.relevance }
    }
  }
  return unique
}

function isNewer(one: ScoredRow, other: ScoredRow): boolean {
  return one.at > other.at || (one.at === other.at && one.row > other.row)
}

/** Pieces of a document that are further apart are about other things. */
const distanceMax = 3

/** Keeps of near pieces of a long message the best one. Argument and result are in order of relevance. */
function foldPieces(ranked: readonly ScoredRow[]): ScoredRow[] {
  /** Numbers of the kept pieces, by message. */
  const kept = new Map<number, number[]>()
  return ranked.filter(({ range, row }) => {
    const piece = range.tierIndex.piece(row)
    if (!piece) return true
    const numbers = kept.get(piece.message) ?? []
    kept.set(piece.message, numbers)
    if (numbers.some(number => Math.abs(number - piece.number) <= distanceMax)) return false
    numbers.push(piece.number)
    return true
  })
}
