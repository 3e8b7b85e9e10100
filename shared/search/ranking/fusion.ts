import type { Steps } from '#shared/core/event-loop.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import { findAdjacentTurns } from '#shared/search/ranking/context.ts'
import { contextScoreOf, isContext, scoreOf } from '#shared/search/ranking/signals.ts'
import { type ScoredRow, uniqueTexts } from '#shared/search/ranking/scores.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import type { Tier } from '#shared/domain/memory.ts'
import { tuned } from '#shared/search/tuned.ts'

/** The rows of a part of a message, best first; `toRanked` completes those that are chosen. */
export type QuestionRanking = {
  rows: readonly ScoredRow[]
  /** The weight of its relevances among those of other parts. */
  weight: number
  toRanked: (row: ScoredRow) => RankedRow
}

/**
 * `relevance` orders inside one ranking; `score` (0 to 1) orders a search and is shown; `strength` decides the floor
 * (1: relevant by itself); `evidence` is log odds that it answers.
 */
export type RankedRow = ScoredRow & {
  strength: number
  /** Undefined where it is not known; costs the terms of its text. */
  evidence?: () => number | undefined
  newest?: FusedRow | undefined
  /** The vector of the part of the message that it fits best. */
  vector: Float32Array | null
}

/** A row as it is compared with those of other parts. */
export type FusedRow = Pick<
  ScoredRow,
  'range' | 'row' | 'at' | 'relevance' | 'ownShare' | 'twins'
> & {
  scored: ScoredRow
  /** The newest row that says otherwise of the same thing. */
  newest?: FusedRow
  ranking: QuestionRanking
}

/**
 * Returns each row once, as ranked by the part that it fits best; best first.
 *
 * @param isAlone the message has one part, whose rows stay in their order
 */
export function fuseRankings(
  rankings: readonly QuestionRanking[],
  ranges: readonly SearchRange[],
  isAlone: boolean,
): FusedRow[] {
  const fused: FusedRow[] = []
  for (const ranking of rankings) {
    for (const scored of ranking.rows) {
      const { range, row, at, ownShare, twins } = scored
      const relevance = scored.relevance * ranking.weight
      if (isAlone || relevance > 0) {
        fused.push({ range, row, at, relevance, ownShare, twins, scored, ranking })
      }
    }
  }
  if (isAlone) return fused
  fused.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
  // A row has the text of its other rankings, which are behind.
  return uniqueTexts(fused, ranges)
}

/** Puts the rows with this very text first, with an infinite relevance. */
export function sameTextFirst(ranked: readonly FusedRow[], wholeText: string): readonly FusedRow[] {
  const hash = hashText(wholeText)
  const isSame = ({ range, row }: FusedRow) => range.tierIndex.textHash(row) === hash
  const same = ranked.filter(isSame).map(row => ({ ...row, relevance: Infinity, ownShare: 1 }))
  return same.length === 0 ? ranked : [...same, ...ranked.filter(row => !isSame(row))]
}

/**
 * The score of each row. One that is found for the turns around it has less than the best of these, so that it is told
 * after it.
 */
export function scoreRows(rows: readonly RankedRow[]): number[] {
  const isAround = ({ signals }: RankedRow): boolean => isContext(signals)
  const matches = Map.groupBy(
    rows.filter(row => !isAround(row)),
    ({ range }) => range,
  )
  const scoresByRange = new Map(
    Array.from(matches, ([range, matchesOfRange]) => [
      range,
      new Map(matchesOfRange.map(match => [match.row, scoreOf(match)])),
    ]),
  )
  return rows.map(rankedRow => {
    const { range, row, relevance } = rankedRow
    const scores = scoresByRange.get(range)
    if (!isAround(rankedRow)) return scores!.get(row)!
    const { firstContextRow, lastContextRow } = findAdjacentTurns(range)
    const last = lastContextRow(row)
    let best = 0
    for (let near = firstContextRow(row); near <= last; near++)
      best = Math.max(best, scores?.get(near) ?? 0)
    return contextScoreOf(relevance, best || 1)
  })
}

/** Counts the rows that match any part of a message, each once and all copies; does nothing without a listener. */
export function countMatching(onMatchCount: ((count: number) => void) | undefined) {
  const matching = new Map<SearchRange, Set<number>>()
  return {
    add:
      onMatchCount &&
      ((range: SearchRange, rows: Iterable<number>) => {
        const matchingRows = matching.get(range) ?? new Set()
        matching.set(range, matchingRows)
        for (const row of rows) matchingRows.add(row)
      }),
    *report(): Steps<void> {
      if (!onMatchCount) return
      let count = 0
      for (const [range, rows] of matching) {
        if (!range.tierIndex.hasCopies) count += rows.size
        else for (const copies of (yield* countCopies(range, rows)).values()) count += copies
      }
      onMatchCount(count)
    },
  }
}

/** Rows of one step. */
const stepRows = 8_192

/** Counts the allowed rows of a range by the texts of some rows. */
function* countCopies(
  { tierIndex, first, end, allowsAll, allows }: SearchRange,
  rows: Iterable<number>,
): Steps<Map<number, number>> {
  const counts = new Map<number, number>()
  const isWhole = allowsAll && end - first === tierIndex.count
  for (const row of rows) counts.set(tierIndex.textOf(row), isWhole ? tierIndex.copyCount(row) : 0)
  for (let row = isWhole ? end : first; row < end; row++) {
    if (row % stepRows === stepRows - 1) yield
    const text = tierIndex.textOf(row)
    const count = counts.get(text)
    if (count !== undefined && allows(row)) counts.set(text, count + 1)
  }
  return counts
}

/** How many memories have the text of each row, in all ranges that it was found in. */
export function* copiesOfRows(rows: readonly RankedRow[]): Steps<number[]> {
  const copies = rows.map(() => 0)
  const places = rows.flatMap((rankedRow, i) =>
    [rankedRow, ...(rankedRow.twins ?? [])].map(({ range, row }) => ({ i, range, row })),
  )
  for (const [range, placesInRange] of Map.groupBy(places, place => place.range)) {
    const { tierIndex } = range
    const rowsInRange = placesInRange.map(({ row }) => row)
    const counts = tierIndex.hasCopies ? yield* countCopies(range, rowsInRange) : undefined
    // A row may be a twin several times, once for each part of a message.
    for (const [i, [place]] of Map.groupBy(placesInRange, place => place.i))
      copies[i]! += counts?.get(tierIndex.textOf(place!.row)) ?? 1
  }
  return copies
}

type BlendableRow = { range: { tier: Tier }; relevance: number }

const { reflectionShareMin, reflectionShareMax, replacementRelevanceRatio } = tuned.candidates

/**
 * Returns the best `limit` rows of all tiers, best first. Reflections (tiers 2 and 3) get a share between a fifth and a
 * half, but never replace rows that are much more relevant. `ranked` is in order of relevance.
 */
export function blendTiers<Row extends BlendableRow>(ranked: readonly Row[], limit: number): Row[] {
  const isReflection = ({ range }: Row) => range.tier > 1
  const chosen = ranked.slice(0, limit)
  const rest = ranked.slice(limit)
  const reflections = chosen.filter(isReflection).length
  const missing = Math.floor(limit * reflectionShareMin) - reflections
  const surplus = reflections - Math.ceil(limit * reflectionShareMax)

  if (missing > 0) replaceWorst(chosen, rest, missing, isReflection)
  if (surplus > 0) replaceWorst(chosen, rest, surplus, row => !isReflection(row))
  return chosen.sort((a, b) => b.relevance - a.relevance)
}

/** Replaces up to `count` of the worst rows by eligible ones of `rest`. */
function replaceWorst<Row extends BlendableRow>(
  chosen: Row[],
  rest: readonly Row[],
  count: number,
  isEligible: (row: Row) => boolean,
) {
  let remaining = count
  for (const row of rest) {
    if (remaining === 0) return
    if (!isEligible(row)) continue
    const worst = chosen.findLastIndex(other => !isEligible(other))
    const leaving = chosen[worst]
    if (!leaving || row.relevance < leaving.relevance * replacementRelevanceRatio) return
    chosen.splice(worst, 1)
    chosen.push(row)
    remaining--
  }
}
