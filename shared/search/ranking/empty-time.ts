import { runAtOnce } from '#shared/core/event-loop.ts'
import { buildConcepts, type Concepts } from '#shared/search/query/concepts.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import type { RankingQuery, ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import { scoreWords } from '#shared/search/ranking/score-words.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

/** Spans have half a day of slack for time zones. */
const slackMs = 43_200_000

/**
 * Whether a question names a time that is over and of which nothing is remembered: other memories that share
 * its words are no answer. Of today, this week or a day to come something may have been said before.
 */
export function isNamedTimeEmpty(
  ranges: readonly SearchRange[],
  { times }: ParsedQuery,
  now: number,
): boolean {
  if (times.length === 0 || times.some(({ to }) => to > now + slackMs)) return false
  return ranges.every(({ tierIndex, first, end }) =>
    times.every(time => {
      const span = tierIndex.range(time.from, time.to)
      return Math.max(first, span.first) >= Math.min(end, span.end)
    }),
  )
}

/** Such a row has this share of what is asked beside the time, of three words at least. */
const clearShare = 0.75
const clearTermsMin = 3
const clearRowsMax = 3

/** Words of times that name no day, month or year: many rows have them, each of another time. */
const relativeWords: ReadonlySet<string> = new Set(
  termsOf(
    'a few couple one two three four five six seven eight nine ten day days night week weeks weekend month months year years ago back before now last past previous this yesterday today early late in on of by from during since until till',
  ),
)

/**
 * The rows that answer a question about a time without memories all the same: they say nearly all that is
 * asked, or they name that time themselves ("in March I move to Naxos"). Best first.
 */
export function keepClearMatches(
  rows: readonly ScoredRow[],
  { parsedQuery, weights }: RankingQuery,
  ranges: readonly SearchRange[],
): ScoredRow[] {
  const { terms, nonTimeTerms } = parsedQuery
  const indexes = ranges.map(({ tierIndex }) => tierIndex.wordIndex)
  const besideTime = new Set(nonTimeTerms)
  const asked = terms.filter(({ term }) => besideTime.has(term))
  const named = terms.filter(
    ({ term, weight }) => !besideTime.has(term) && !relativeWords.has(term) && weight > 0,
  )
  const shareOf = createShares(rows, buildConcepts(asked, indexes, weights))
  const timeOf = createShares(rows, buildConcepts(named, indexes, weights))
  return rows
    .filter(
      row =>
        (asked.length >= clearTermsMin && shareOf(row) >= clearShare) || timeOf(row) >= clearShare,
    )
    .slice(0, clearRowsMax)
}

/** How much of the concepts each row has, 0 to 1. */
function createShares(rows: readonly ScoredRow[], concepts: Concepts): (row: ScoredRow) => number {
  const shares = new Map<ScoredRow, number>()
  if (concepts.maxTotal === 0) return () => 0
  for (const [range, ofRange] of Map.groupBy(rows, row => row.range)) {
    const { totals, release } = runAtOnce(scoreWords(range, concepts))
    for (const row of ofRange) shares.set(row, totals[row.row - range.first]! / concepts.maxTotal)
    release()
  }
  return row => shares.get(row) ?? 0
}
