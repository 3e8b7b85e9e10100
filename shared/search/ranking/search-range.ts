import { tiers as allTiers, type Tier } from '#shared/domain/memory.ts'
import type { TierIndex } from '#shared/search/index/tier-index.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

/** The rows of one block that a question may be answered from. */
export type SearchRange = {
  readonly tierIndex: TierIndex
  readonly tier: Tier
  /** Which of the images searched it belongs to. */
  readonly indexNumber: number
  readonly first: number
  readonly end: number
  /** Whether every row of [first, end) may be an answer; otherwise ask `allows`. */
  readonly allowsAll: boolean
  allows(row: number): boolean
}

export type SearchBounds = {
  tiers?: readonly Tier[]
  /** Lowest importance; rows without one are left out whenever it is set. */
  importance?: number
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
}

/** The parts of the images within the bounds; those without a row are left out. */
export function buildSearchRanges(
  vaultIndexes: readonly VaultIndex[],
  bounds: SearchBounds,
): SearchRange[] {
  const { importance, from = -Infinity, to = Infinity } = bounds
  const allowsAll = importance === undefined
  const ranges: SearchRange[] = []
  for (const [indexNumber, { byTier }] of vaultIndexes.entries()) {
    for (const tier of bounds.tiers ?? allTiers) {
      const tierIndex = byTier[tier]
      if (!allowsAll && tier === 1) continue
      const { first, end } = tierIndex.range(from, to)
      if (first >= end) continue
      const allows = (row: number) => allowsAll || (tierIndex.importance(row) ?? 0) >= importance
      ranges.push({ tierIndex, tier, indexNumber, first, end, allowsAll, allows })
    }
  }
  return ranges
}
