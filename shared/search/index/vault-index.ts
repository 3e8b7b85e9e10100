import { tiers, type EmbeddedMemory, type Memory, type Tier } from '#shared/domain/memory.ts'
import {
  createTierIndex,
  type TierIndex,
  type TierIndexWriter,
} from '#shared/search/index/tier-index.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import { isLowerCaseUuid } from '#shared/search/index/uuid-table.ts'
import { codecOf, type Precision } from '#shared/search/vectors/precision.ts'

/** All that a vault, or one session of it, remembers in one space of vectors; in memory. */
export type VaultIndex = {
  readonly dimension: number
  readonly byTier: Readonly<Record<Tier, TierIndex>>
  /**
   * Inserts or replaces by id; of the same id twice, the last one counts. Any
   * number in any order, but rows newer than all others cost least. Ids are
   * lower-case UUIDs.
   *
   * @throws TypeError before anything is changed when an id or a dimension is wrong.
   */
  put(memories: readonly EmbeddedMemory[]): void
  /** Unknown ids are ignored. */
  remove(ids: readonly string[]): void
  has(id: string): boolean
  find(id: string): Memory | undefined
  /** Bytes held: vectors, texts, words and what keeps them in order. */
  readonly bytes: number
  /** Gives back the room kept for growing; worth it once an image is loaded. */
  trim(): void
}

export type VaultIndexOptions = {
  dimension: number
  /** `int8` (default) errs by 0.0002 in a cosine, `float32` takes four times the memory. */
  precision?: Precision
  /** The terms of a text, repetitions included, by which words find it. */
  termsOf: (text: string) => string[]
}

export function createVaultIndex({
  dimension,
  precision = 'int8',
  termsOf,
}: VaultIndexOptions): VaultIndex {
  const codec = codecOf(dimension, precision)
  const emptyTierIndex = sharedEmptyTierIndex(codec)
  const byTier: Record<Tier, TierIndexWriter> = {
    1: emptyTierIndex,
    2: emptyTierIndex,
    3: emptyTierIndex,
  }
  const filledTierIndexes = () =>
    tiers.map(tier => byTier[tier]).filter(block => block !== emptyTierIndex)

  return {
    dimension,
    byTier,
    get bytes() {
      return filledTierIndexes().reduce((sum, block) => sum + block.bytes, emptyVaultIndexBytes)
    },

    put(memories) {
      for (const memory of memories) validateMemory(memory, dimension)
      const lastById = new Map(memories.map(memory => [memory.id, memory]))
      for (const tier of tiers) {
        const inTier = [...lastById.values()].filter(memory => memory.tier === tier)
        const inOtherTiers = [...lastById.values()].filter(memory => memory.tier !== tier)
        byTier[tier].remove(inOtherTiers.map(memory => memory.id))
        if (inTier.length === 0) continue
        if (byTier[tier] === emptyTierIndex) byTier[tier] = createTierIndex(tier, codec, termsOf)
        byTier[tier].put(inTier)
      }
    },

    remove(ids) {
      for (const block of filledTierIndexes()) block.remove(ids)
    },

    has: id => filledTierIndexes().some(block => block.has(id)),

    find(id) {
      for (const block of filledTierIndexes()) {
        const memory = block.find(id)
        if (memory) return memory
      }
      return undefined
    },

    trim() {
      for (const block of filledTierIndexes()) block.trim()
    },
  }
}

/** An image without memories. */
const emptyVaultIndexBytes = 1_500

const emptyTierIndexes = new Map<Codec, TierIndexWriter>()

/** Stands for every tier without memories: a block of its own would take 19 KB of objects. */
function sharedEmptyTierIndex(codec: Codec): TierIndexWriter {
  const known = emptyTierIndexes.get(codec)
  if (known) return known
  const block = createTierIndex(1, codec, () => [])
  emptyTierIndexes.set(codec, block)
  return block
}

function validateMemory({ id, vector }: EmbeddedMemory, dimension: number) {
  if (!isLowerCaseUuid(id)) throw new TypeError('A memory id is a lower-case UUID')
  if (vector.length !== dimension) {
    throw new TypeError(
      `A vector of ${vector.length} numbers does not belong to a space of ${dimension}`,
    )
  }
}
