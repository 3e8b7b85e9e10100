import type { Tier } from '#shared/domain/memory.ts'

type BlendableRow = { range: { tier: Tier }; relevance: number }

/** Reflections summarise many turns: they get a fifth of the results where they are relevant. */
const reflectionShareMin = 1 / 5
/** They must not displace the turns themselves. */
const reflectionShareMax = 1 / 2
/** Least relevance of a row that enters for a share, relative to the row that leaves. */
const replacementRelevanceRatio = 0.6

/**
 * The best `limit` rows of all tiers, best first. Reflections (tiers 2 and 3) get a share between a
 * fifth and a half, but never replace rows that are much more relevant. `ranked` is in order of
 * relevance.
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
