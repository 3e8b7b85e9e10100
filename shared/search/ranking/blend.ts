import type { Tier } from '#shared/domain/memory.ts'

type BlendableRow = { range: { tier: Tier }; relevance: number }

/** Reflections stand for many turns: a fifth of an answer is theirs where they have to do with it. */
const reflectionShareMin = 1 / 5
/** They must not push out what was really said. */
const reflectionShareMax = 1 / 2
/** What comes in for a share is at least this good, against what leaves. */
const replacementRelevanceRatio = 0.6

/**
 * The best `limit` of rows of all tiers, best first. Reflections (tiers 2 and 3) get a share between
 * a fifth and a half, but only ever in the place of rows that are not much better. `ranked` is in
 * order of relevance.
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

/** Lets up to `count` rows of one kind in, each for the worst row of the other kind. */
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
