import { tiers, type EmbeddedMemory, type Memory, type Tier } from '#shared/domain/memory.ts'
import { TierIndex, type ReadonlyTierIndex } from '#shared/search/index/tier-index.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import { isLowerCaseUuid } from '#shared/search/index/uuid-table.ts'
import { packArrays, unpackArrays } from '#shared/search/columns/packed-arrays.ts'
import { codecOf } from '#shared/search/vectors/int8-codec.ts'

/** The memories of a vault, or of one session of it, in one vector space; held in memory. */
export type VaultIndex = {
  readonly dimension: number
  readonly byTier: Readonly<Record<Tier, ReadonlyTierIndex>>
  /**
   * Inserts or replaces memories by id; of the same id the last one is stored. Memories newer than all others cost
   * least. Ids are lower-case UUIDs.
   *
   * @throws TypeError before any change when an id or a dimension is wrong.
   */
  put(memories: readonly EmbeddedMemory[]): void
  /** Removes memories; unknown ids are ignored. */
  remove(ids: readonly string[]): void
  has(id: string): boolean
  find(id: string): Memory | undefined
  /** Bytes of vectors, texts, word index and their order. */
  readonly bytes: number
  /** Does the expensive part of `trim` in steps of some milliseconds. Nothing may use the index before the last. */
  trimSteps(): Generator<void, void, void>
  /** Frees unused capacity; worth it once an index is loaded. */
  trim(): void
  /** All of it as bytes, for an empty index of the same dimension. Nothing of a removed memory is in it. */
  save(): Buffer
  /** Takes what `save` has returned with the same code. @throws Error when it cannot be read. */
  restore(saved: Buffer): void
}

export function createVaultIndex({
  dimension,
  codec = codecOf(dimension),
  termsOf,
  packLater = false,
}: {
  dimension: number
  /** Default: the int8 codec of the dimension, which has an error of 0.0002 in a cosine. */
  codec?: Codec
  /** The terms of a text, repetitions included. */
  termsOf: (text: string) => string[]
  /** Packs nothing before the first `trimSteps` or `trim`; for loading. */
  packLater?: boolean
}): VaultIndex {
  const emptyTierIndex = sharedEmptyTierIndex(codec)
  const byTier: Record<Tier, TierIndex> = {
    1: emptyTierIndex,
    2: emptyTierIndex,
    3: emptyTierIndex,
  }
  const filledTierIndexes = () =>
    tiers.map(tier => byTier[tier]).filter(tierIndex => tierIndex !== emptyTierIndex)

  return {
    dimension,
    byTier,
    get bytes() {
      return filledTierIndexes().reduce(
        (sum, tierIndex) => sum + tierIndex.bytes,
        emptyVaultIndexBytes,
      )
    },

    put(memories) {
      for (const memory of memories) validateMemory(memory, dimension)
      const lastById = new Map(memories.map(memory => [memory.id, memory]))
      for (const tier of tiers) {
        const inTier = [...lastById.values()].filter(memory => memory.tier === tier)
        const inOtherTiers = [...lastById.values()].filter(memory => memory.tier !== tier)
        byTier[tier].remove(inOtherTiers.map(memory => memory.id))
        if (inTier.length === 0) continue
        if (byTier[tier] === emptyTierIndex) {
          byTier[tier] = new TierIndex(tier, codec, termsOf, { packLater })
        }
        byTier[tier].put(inTier)
      }
    },

    remove(ids) {
      for (const tierIndex of filledTierIndexes()) tierIndex.remove(ids)
    },

    has: id => filledTierIndexes().some(tierIndex => tierIndex.has(id)),

    find(id) {
      for (const tierIndex of filledTierIndexes()) {
        const memory = tierIndex.find(id)
        if (memory) return memory
      }
      return undefined
    },

    *trimSteps() {
      for (const tierIndex of filledTierIndexes()) yield* tierIndex.trimSteps()
    },

    trim() {
      for (const tierIndex of filledTierIndexes()) tierIndex.trim()
    },

    save: () =>
      packArrays(tiers.map(tier => (byTier[tier] === emptyTierIndex ? null : byTier[tier].save()))),

    restore(saved) {
      const states = unpackArrays(saved) as (ReturnType<TierIndex['save']> | null)[]
      for (const [n, tier] of tiers.entries()) {
        const state = states[n]
        if (state) (byTier[tier] = new TierIndex(tier, codec, termsOf)).restore(state)
      }
    },
  }
}

/** Size of an index without memories. */
const emptyVaultIndexBytes = 1_500

const emptyTierIndexes = new Map<Codec, TierIndex>()

/** Returns one empty index for all tiers without memories: an instance of each would take 19 KB. */
function sharedEmptyTierIndex(codec: Codec): TierIndex {
  const known = emptyTierIndexes.get(codec)
  if (known) return known
  const tierIndex = new TierIndex(1, codec, () => [])
  emptyTierIndexes.set(codec, tierIndex)
  return tierIndex
}

function validateMemory({ id, vector }: EmbeddedMemory, dimension: number) {
  if (!isLowerCaseUuid(id)) throw new TypeError('A memory id is a lower-case UUID')
  if (vector.length !== dimension) {
    throw new TypeError(
      `A vector of ${vector.length} numbers does not belong to a space of ${dimension}`,
    )
  }
}
