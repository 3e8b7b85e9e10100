import type { Steps } from '#shared/core/event-loop.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import { rowsOfPerson } from '#shared/search/ranking/kind-ways.ts'
import { isNotExcluded, type RowLimits } from '#shared/search/ranking/rank-rows.ts'
import { attributeStrength } from '#shared/search/ranking/relevance-floor.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { uniqueTexts } from '#shared/search/ranking/unique-texts.ts'

/** The rows of a part of a message, best first, and what is known of a row that is chosen. */
export type QuestionRanking = {
  rows: readonly ScoredRow[]
  toRanked: (row: ScoredRow) => RankedRow
}

/** A row with the vector of the part of the message that it fits best. */
export type RankedRow = ScoredRow & {
  strength: number
  /** Its evidence, where that is known; costs the terms of its text. */
  weigh?: () => number | undefined
  vector: Float32Array | null
}

/**
 * What is known of the person who asks.
 *
 * @param others what else matches, best first: it follows
 */
export function* personRows(
  ranges: readonly SearchRange[],
  search: Pick<RowLimits, 'excludeTexts'>,
  { vector, parsedQuery: { labels } }: RankingQuery,
  others: readonly ScoredRow[],
): Steps<QuestionRanking> {
  const found = yield* rowsOfPerson(ranges, { isIdentity: labels !== undefined })
  const rows = uniqueTexts(found.filter(isNotExcluded(search)))
  const least = rows.at(-1)?.relevance ?? Infinity
  const rest = others.map(row => ({ ...row, relevance: Math.min(row.relevance, least) }))
  return {
    rows: uniqueTexts([...rows, ...rest]),
    toRanked: row => ({ ...row, strength: row.statesAttribute ? attributeStrength : 1, vector }),
  }
}

/** Each row once, as the part ranked it that it fits best; best first. */
export function fuseRankings(rankings: readonly QuestionRanking[]): RankedRow[] {
  const ranked = rankings
    .flatMap(({ rows, toRanked }) => rows.map(toRanked))
    .filter(({ relevance }) => relevance > 0)
  ranked.sort((a, b) => b.relevance - a.relevance || b.at - a.at)
  // A row has the text of its other rankings, which are behind.
  return uniqueTexts(ranked)
}

/** A row whose text is the query comes first, with an infinite relevance. */
export function sameTextFirst<Row extends ScoredRow>(ranked: readonly Row[], query: string): Row[] {
  const hash = hashText(query)
  const isSame = ({ range, row }: ScoredRow) => range.tierIndex.textHash(row) === hash
  const same = ranked.filter(isSame).map(row => ({ ...row, relevance: Infinity }))
  return same.length === 0 ? [...ranked] : [...same, ...ranked.filter(row => !isSame(row))]
}

/** Counts the rows that match parts of a message, each once; does nothing without a listener. */
export function countMatching(onMatchCount: ((count: number) => void) | undefined) {
  const matching = new Map<SearchRange, Set<number>>()
  return {
    add:
      onMatchCount &&
      ((range: SearchRange, rows: Iterable<number>) => {
        const known = matching.get(range) ?? new Set()
        matching.set(range, known)
        for (const row of rows) known.add(row)
      }),
    report() {
      onMatchCount?.(matching.values().reduce((sum, { size }) => sum + size, 0))
    },
  }
}
