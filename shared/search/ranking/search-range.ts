import { tiers as allTiers, type Tier } from '#shared/domain/memory.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { ReadonlyTierIndex } from '#shared/search/index/tier-index.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

/** The rows of one tier index within the bounds of a query. */
export type SearchRange = {
  readonly tierIndex: ReadonlyTierIndex
  readonly tier: Tier
  /** Position of its vault index among those searched. */
  readonly indexNumber: number
  readonly first: number
  readonly end: number
  /** Whether every row of [first, end) is allowed; otherwise `allows` decides. */
  readonly allowsAll: boolean
  allows(row: number): boolean
}

export type SearchBounds = {
  tiers?: readonly Tier[]
  /** Lowest importance; rows without one are left out whenever it is set. */
  importance?: number
  /** Rows without such metadata are left out. */
  metadata?: MetadataFilter
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
}

/** The ranges of the indexes within the bounds; empty ones are left out. */
export function buildSearchRanges(
  vaultIndexes: readonly VaultIndex[],
  bounds: SearchBounds,
): SearchRange[] {
  const { importance, metadata, from = -Infinity, to = Infinity } = bounds
  const allowsAll = importance === undefined && metadata === undefined
  const ranges: SearchRange[] = []
  for (const [indexNumber, { byTier }] of vaultIndexes.entries()) {
    for (const tier of bounds.tiers ?? allTiers) {
      const tierIndex = byTier[tier]
      if (importance !== undefined && tier === 1) continue
      const { first, end } = tierIndex.range(from, to)
      if (first >= end) continue
      const hasMetadata = metadata && tierIndex.metadataMatcher(metadata)
      const allows = (row: number): boolean =>
        (importance === undefined || (tierIndex.importance(row) ?? 0) >= importance) &&
        (hasMetadata === undefined || hasMetadata(row))
      ranges.push({ tierIndex, tier, indexNumber, first, end, allowsAll, allows })
    }
  }
  return ranges
}
