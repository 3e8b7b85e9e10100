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
  isContext,
  isMatch,
  ownSignal,
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
import { tuned } from '#shared/search/tuned.ts'

/** A candidate with its signals and relevance. */
export type ScoredRow = {
  range: SearchRange
  row: number
  at: number
  signals: Signals
  relevance: number
  /** Share of the relevance that the row has without the turns around it. */
  ownShare: number
  /** Rows of other ranges with its text. */
  twins?: readonly Pick<ScoredRow, 'range' | 'row'>[] | undefined
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
  /** See `asksOnlyTimeOrSpeaker`. */
  isOpen: boolean
  /** Whether it asks: then a question that repeats it is worth less. Key words do not. */
  asksQuestion: boolean
  weights: RankingWeights
}

/** Whether a question names nothing but times and people: "what happened in July". */
export const asksOnlyTimeOrSpeaker = (
  { nonTimeTerms }: ParsedQuery,
  { speakerMarkers }: Concepts,
): boolean => nonTimeTerms.every(term => speakerMarkers.includes(speakerMarker + term))

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const { informativeTokens, usualTokens, boostedRowsMax, boostMax } = tuned.signals

/** What a search finds of a range before rows are scored. */
type Scanned = Pick<CandidateQuery, 'scanned' | 'attributeRows' | 'wordScores' | 'candidateCount'>

/** Finds what is near to the query in a range, in short steps; the rows must not change before the last. */
function* scanForQuery(
  range: SearchRange,
  { vector, nearestRows, parsedQuery: { times, labels } }: RankingQuery,
  { candidateCount, wordScores }: Pick<CandidateQuery, 'candidateCount' | 'wordScores'>,
): Steps<Scanned> {
  const scanned = yield* scanRange(range, { vector, nearestRows, times, candidateCount })
  yield
  const attributeRows = labels ? yield* findAttributeRows(range, labels) : noRows
  yield
  return { scanned, attributeRows, wordScores, candidateCount }
}

function scoreScanned(
  range: SearchRange,
  query: RankingQuery,
  { scanned, attributeRows, wordScores, candidateCount }: Scanned,
): {
  scored: ScoredRow[]
  /** Whether all rows of the range are scored. */
  complete: boolean
} {
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
  const questions = query.asksQuestion ? questionHints(range, rows) : undefined
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
      question: (questions?.[i] ?? 0) * repetitionOf(share(totals[positions.of(row)]!)),
      informativeness: statesAttribute ? 1 : informativenessOf(tierIndex.tokens(row), weights),
    }
    const relevance = fuseSignals(signals, weights)
    const isAlone = signals.context === 0 || relevance === 0
    const ownShare = isAlone ? 1 : fuseSignals(signals, weights, 0) / relevance
    scored.push({ range, row, at, signals, relevance, ownShare, statesAttribute })
  }
  capBoostedScores(scored, adjacent)
  return { scored, complete }
}

const noRows: ReadonlySet<number> = new Set()

function informativenessOf(tokens: number, { longText }: RankingWeights): number {
  const filled = 1 - Math.exp(-tokens / informativeTokens)
  return tokens > usualTokens ? filled * (usualTokens / tokens) ** longText : filled
}

/** Maps the share of the query's words in a question to how much it repeats: 0 up to half of them. */
const repetitionOf = (words: number): number => Math.max(0, 2 * words - 1)

/** Caps each row that scores by context alone just below the best row of that context. Rows ascend. */
function capBoostedScores(scored: readonly ScoredRow[], adjacent: AdjacentTurns) {
  for (const [i, boosted] of scored.entries()) {
    if (!isContext(boosted.signals)) continue
    const own = ownSignal(boosted.signals)
    const from = adjacent.firstContextRow(boosted.row)
    const to = adjacent.lastContextRow(boosted.row)
    let bestContext = 0
    const compare = (other: ScoredRow) => {
      if (ownSignal(other.signals) > own) bestContext = Math.max(bestContext, other.relevance)
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
  const release = (): void => words.forEach(scores => scores.release())
  for (let candidateCount = firstCandidateCount(limit); ; candidateCount *= candidateGrowth) {
    const scans: Scanned[] = []
    for (const [i, range] of ranges.entries()) {
      const search = { candidateCount, wordScores: words[i]! }
      scans.push(yield* scanForQuery(range, rankingQuery, search))
    }
    let isComplete = true
    const scored: ScoredRow[] = []
    for (const [i, range] of ranges.entries()) {
      const pass = scoreScanned(range, rankingQuery, scans[i]!)
      isComplete &&= pass.complete
      for (const row of pass.scored) scored.push(row)
      onMatching?.(range, rowsWithWords(words[i]!))
      const matching = onMatching ? pass.scored.filter(({ signals }) => isMatch(signals)) : []
      const matchingRows = matching.map(({ row }) => row)
      onMatching?.(range, matchingRows)
      yield
    }
    const wanted = excludeTexts ? scored.filter(isWanted) : scored
    const scoredCount = scored.length
    boostByTimeOrder(wanted, rankingQuery.parsedQuery.order)
    wanted.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
    const uniqueRows = everyRow ? wanted : uniqueTexts(wanted, ranges)
    const unique = floor ? foldPieces(uniqueRows) : uniqueRows
    const isSaturated = unique.length < limit && unique.length < scoredCount
    if (!isSaturated || isComplete) {
      release()
      return unique
    }
  }
}

/**
 * Raises the relevance of the later of the best rows by up to 15 % when a query asks for the latest state, of the
 * earlier ones when it asks for the first. Modifies `rows`.
 */
function boostByTimeOrder(rows: ScoredRow[], order: 'latest' | 'first' | undefined) {
  if (!order) return
  const best = rows
    .filter(({ signals }) => !isContext(signals))
    .sort((a, b) => b.relevance - a.relevance)
    .slice(0, boostedRowsMax)
  best.sort((a, b) => (order === 'latest' ? a.at - b.at : b.at - a.at))
  for (const [position, row] of best.entries())
    row.relevance *= 1 + (boostMax * position) / boostedRowsMax
}

/**
 * Removes duplicates: of identical texts the newest row stays, with the relevance of the best. Argument and result
 * are in order of relevance.
 */
export function uniqueTexts<
  Row extends Pick<ScoredRow, 'range' | 'row' | 'at' | 'relevance' | 'ownShare' | 'twins'>,
>(ranked: readonly Row[], ranges: readonly SearchRange[]): Row[] {
  // Within a tier texts have small numbers.
  const keyOf =
    ranges.length === 1
      ? ({ range, row }: Row) => range.tierIndex.textOf(row)
      : ({ range, row }: Row) => range.tierIndex.textHash(row)
  const positions = new Map<number, number>()
  const unique: Row[] = []
  for (const scored of ranked) {
    const key = keyOf(scored)
    const index = positions.get(key)
    if (index === undefined) {
      positions.set(key, unique.length)
      unique.push(scored)
      continue
    }
    const known = unique[index]!
    const { relevance, ownShare, twins = [] } = known
    const [shown, other] = isNewer(scored, known) ? [scored, known] : [known, scored]
    unique[index] =
      other.range === shown.range
        ? { ...shown, relevance, ownShare }
        : { ...shown, relevance, ownShare, twins: [...twins, other] }
  }
  return unique
}

type Dated = Pick<ScoredRow, 'at' | 'row'>

function isNewer(one: Dated, other: Dated): boolean {
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
