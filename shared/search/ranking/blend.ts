import type { Tier } from '#shared/domain/memory.ts'

type Ranked = { place: { tier: Tier }; relevance: number }

/** Reflections stand for many turns: a fifth of an answer is theirs where they have to do with it. */
const leastShare = 1 / 5
/** They must not push out what was really said. */
const mostShare = 1 / 2
/** What comes in for a share is at least this good, against what leaves. */
const nearlyAsGood = 0.6

/**
 * The best `limit` of rows of all tiers, best first. Reflections (tiers 2 and 3) get a share between
 * a fifth and a half, but only ever in the place of rows that are not much better. `ranked` is in
 * order of relevance.
 */
export function blendTiers<Row extends Ranked>(ranked: readonly Row[], limit: number): Row[] {
  const isReflection = ({ place }: Row) => place.tier > 1
  const chosen = ranked.slice(0, limit)
  const rest = ranked.slice(limit)
  const reflections = chosen.filter(isReflection).length
  const wanted = Math.floor(limit * leastShare) - reflections
  const surplus = reflections - Math.ceil(limit * mostShare)

  if (wanted > 0) swap(chosen, rest, wanted, isReflection)
  if (surplus > 0) swap(chosen, rest, surplus, row => !isReflection(row))
  return chosen.sort((a, b) => b.relevance - a.relevance)
}

/** Lets up to `count` rows of one kind in, each for the worst row of the other kind. */
function swap<Row extends Ranked>(
  chosen: Row[],
  rest: readonly Row[],
  count: number,
  comesIn: (row: Row) => boolean,
) {
  let left = count
  for (const row of rest) {
    if (left === 0) return
    if (!comesIn(row)) continue
    const worst = chosen.findLastIndex(other => !comesIn(other))
    const leaving = chosen[worst]
    if (!leaving || row.relevance < leaving.relevance * nearlyAsGood) return
    chosen.splice(worst, 1)
    chosen.push(row)
    left--
  }
}
