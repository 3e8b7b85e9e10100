import type { Judged } from '#shared/search/ranking/score-candidates.ts'

/**
 * Each text once: the newest of identical texts stands for all, in the place of the best of them.
 * `ranked` is in order of relevance, and so is what is returned.
 */
export function uniqueTexts(ranked: readonly Judged[]): Judged[] {
  const places = new Map<number, number>()
  const unique: Judged[] = []
  for (const judged of ranked) {
    const hash = judged.place.block.textHash(judged.row)
    const index = places.get(hash)
    const known = index === undefined ? undefined : unique[index]
    if (index === undefined || !known) {
      places.set(hash, unique.length)
      unique.push(judged)
    } else if (isNewer(judged, known)) {
      unique[index] = { ...judged, relevance: known.relevance }
    }
  }
  return unique
}

function isNewer(one: Judged, other: Judged): boolean {
  return one.at > other.at || (one.at === other.at && one.row > other.row)
}
