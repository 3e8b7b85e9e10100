import { median } from '#scripts/bench/measure.ts'

/** How two series of paired times differ. */
export type PairedDifference = {
  /** Median of the differences, in the unit of the times. */
  median: number
  /** Standard deviations that the signed ranks are away from no difference; beyond 4: about 1 in 16,000. */
  z: number
}

/** Wilcoxon's signed-rank test of pairs measured in turn: what is slow for both does not count. */
export function comparePairs(
  pairs: readonly (readonly [one: number, other: number])[],
): PairedDifference {
  const differences = pairs.map(([one, other]) => other - one).filter(value => value !== 0)
  const inOrder = differences.toSorted((one, other) => Math.abs(one) - Math.abs(other))
  const count = inOrder.length
  const sum = inOrder.reduce((total, value, index) => total + Math.sign(value) * (index + 1), 0)
  const deviation = Math.sqrt((count * (count + 1) * (2 * count + 1)) / 6)
  return { median: median(differences), z: count === 0 ? 0 : sum / deviation }
}
