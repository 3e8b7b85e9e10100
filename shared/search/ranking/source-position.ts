import { tiers as allTiers, type Tier } from '#shared/domain/memory.ts'
import type { Block } from '#shared/search/index/block.ts'
import type { Image } from '#shared/search/index/vault-index.ts'

/** The rows of one block that a question may be answered from. */
export type Place = {
  readonly block: Block
  readonly tier: Tier
  /** Which of the images searched it belongs to. */
  readonly image: number
  readonly first: number
  readonly end: number
  /** Whether every row of [first, end) may be an answer; otherwise ask `allows`. */
  readonly open: boolean
  allows(row: number): boolean
}

export type Bounds = {
  tiers?: readonly Tier[]
  /** Lowest importance; rows without one are left out whenever it is set. */
  importance?: number
  /** Event times in [from, to), epoch milliseconds. */
  from?: number
  to?: number
}

/** The parts of the images within the bounds; those without a row are left out. */
export function placesOf(images: readonly Image[], bounds: Bounds): Place[] {
  const { importance, from = -Infinity, to = Infinity } = bounds
  const open = importance === undefined
  const places: Place[] = []
  for (const [image, { blocks }] of images.entries()) {
    for (const tier of bounds.tiers ?? allTiers) {
      const block = blocks[tier]
      if (!open && tier === 1) continue
      const { first, end } = block.range(from, to)
      if (first >= end) continue
      const allows = (row: number) => open || (block.importance(row) ?? 0) >= importance
      places.push({ block, tier, image, first, end, open, allows })
    }
  }
  return places
}
