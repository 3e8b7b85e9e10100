import type { Steps } from '#shared/core/event-loop.ts'
import { boostByTimeOrder } from '#shared/search/ranking/boost-by-time.ts'
import { isRelated } from '#shared/search/ranking/relevance-floor.ts'
import { foldPieces } from '#shared/search/ranking/fold-pieces.ts'
import {
  scoreCandidates,
  type RangeScores,
  type RankingQuery,
  type ScoredRow,
} from '#shared/search/ranking/score-candidates.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { uniqueTexts } from '#shared/search/ranking/unique-texts.ts'

/** Which rows are wanted, and how many. */
export type RowLimits = {
  /** 1 to 500, or Infinity. */
  limit: number
  /** Also rows that do not match, and of identical texts all rows. */
  everyRow?: boolean
  /** Called with the rows of a range that match, among the best or not; the same row may come again. */
  onMatching?: ((range: SearchRange, rows: Iterable<number>) => void) | undefined
  /** Ignore rows with these texts. */
  excludeTexts?: { has(textHash: number, textOf: () => string): boolean } | undefined
}

/** Least number of candidates by vector and by words each. */
const candidatesMin = 48
export const firstCandidateCount = (limit: number): number => Math.max(candidatesMin, limit)
/** Growth of the number of candidates when duplicates fill them. */
const candidateGrowth = 8

export const isNotExcluded =
  ({ excludeTexts }: Pick<RowLimits, 'excludeTexts'>) =>
  ({ range: { tierIndex }, row }: ScoredRow): boolean =>
    !excludeTexts?.has(tierIndex.textHash(row), () => tierIndex.memory(row).text)

/**
 * The candidates of all ranges in order of relevance, each text once; in short steps, the rows must not
 * change before the last.
 *
 * @param floor they are for a block: of the pieces of a long message only the best ones
 */
export function* rankRows(
  ranges: readonly SearchRange[],
  rankingQuery: RankingQuery,
  { limit, excludeTexts, floor, everyRow, onMatching }: RowLimits & { floor: boolean },
): Steps<ScoredRow[]> {
  const isWanted = isNotExcluded({ excludeTexts })
  for (let candidateCount = firstCandidateCount(limit); ; candidateCount *= candidateGrowth) {
    const passes: RangeScores[] = []
    for (const range of ranges) {
      const pass = yield* scoreCandidates(range, rankingQuery, candidateCount)
      passes.push(pass)
      onMatching?.(range, pass.withWords)
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
    const saturatedByDuplicates = unique.length < limit && unique.length < scored.length
    if (!saturatedByDuplicates || passes.every(pass => pass.complete)) return unique
  }
}
