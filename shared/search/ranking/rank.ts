import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import {
  blendTiers,
  countMatching,
  fuseRankings,
  sameTextFirst,
  type FusedRow,
  type RankedRow,
} from '#shared/search/ranking/fusion.ts'
import { buildSearchRanges, judgeRows, type SearchRange } from '#shared/search/ranking/ranges.ts'
import {
  openMessageSearch,
  rankQuestion,
  type EmbeddedQuestion,
  type QuestionResult,
  type SearchOptions,
} from '#shared/search/ranking/rank-question.ts'
import { toHits, type SearchHit } from '#shared/search/ranking/search-hits.ts'
import {
  defaultWeights,
  isContext,
  scoreOf,
  type RankingWeights,
} from '#shared/search/ranking/signals.ts'
import { markSuperseded } from '#shared/search/ranking/superseded.ts'

export type SearchQuery = SearchOptions & {
  text: string
  /** Null when the query could not be embedded: then it is ranked by words alone. */
  vector: Float32Array | null
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
  search: SearchOptions,
): Steps<SearchHit[]> {
  const limit = ranges.reduce((sum, { first, end }) => Math.min(search.limit, sum + end - first), 0)
  if (limit < 1) return []
  const matchCounter = countMatching(search.onMatchCount)
  const options = { ...search, limit, onMatching: matchCounter.add }
  yield* judgeRows(ranges)
  const message = openMessageSearch(ranges, questions, options)
  const results: QuestionResult[] = []
  for (const question of questions) {
    results.push(yield* rankQuestion(question, message))
    yield
  }
  yield* matchCounter.report()
  const orderedRows = orderRows(results, ranges, questions, options)
  const chosenRows = search.tiers ? orderedRows.slice(0, limit) : blendTiers(orderedRows, limit)
  return yield* toHits(chosenRows.map(toRankedRow), message)
}

/** Fuses the rankings of all parts. Rows below the lowest score are left out; superseded rows stand lower. */
function orderRows(
  results: readonly QuestionResult[],
  ranges: readonly SearchRange[],
  questions: readonly EmbeddedQuestion[],
  { wholeText, minScore = 0, everyRow, floor, onAbstain }: SearchOptions,
): readonly FusedRow[] {
  const rankings = results.flatMap(({ ranking }) => ranking ?? [])
  const fusedRows = fuseRankings(rankings, ranges, questions.length === 1)
  const rankedRows = wholeText === undefined ? fusedRows : sameTextFirst(fusedRows, wholeText)
  const eligibleRows =
    minScore > 0
      ? rankedRows.filter(row => !isContext(row.scored.signals) && scoreOf(row) >= minScore)
      : rankedRows
  if (results.some(({ isTimeEmpty }) => isTimeEmpty)) onAbstain?.('nothing_then')
  else if (eligibleRows.length === 0 && results.some(({ hasClearMatch }) => hasClearMatch))
    onAbstain?.('no_answer')
  const [mainQuestion] = questions
  if (!mainQuestion || everyRow) return eligibleRows
  return markSuperseded(eligibleRows, mainQuestion.text, results[0]!.parsedQuery, { floor })
}

const toRankedRow = (row: FusedRow): RankedRow => {
  const { ranking, scored, relevance, ownShare, twins, newest } = row
  return { ...ranking.toRanked(scored), relevance, ownShare, twins, newest }
}
