import type { ScoredRow } from '#shared/search/ranking/score-candidates.ts'

/**
 * Removes duplicates: of identical texts the newest is returned, with the relevance of the best of
 * them. Argument and result are in order of relevance.
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
