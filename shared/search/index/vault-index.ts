import { tiers, type EmbeddedMemory, type Memory, type Tier } from '#shared/domain/memory.ts'
import { createBlock, type Block, type BlockWriter } from '#shared/search/index/block.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import { isUuid } from '#shared/search/index/ids.ts'
import { codecOf, type Precision } from '#shared/search/vectors/precision.ts'

/** All that a vault, or one session of it, remembers in one space of vectors; in memory. */
export type Image = {
  readonly dimension: number
  readonly blocks: Readonly<Record<Tier, Block>>
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

export type ImageOptions = {
  dimension: number
  /** `int8` (default) errs by 0.0002 in a cosine, `float32` takes four times the memory. */
  precision?: Precision
  /** The terms of a text, repetitions included, by which words find it. */
  termsOf: (text: string) => string[]
}

export function createImage({ dimension, precision = 'int8', termsOf }: ImageOptions): Image {
  const codec = codecOf(dimension, precision)
  const nothing = emptyBlockOf(codec)
  const blocks: Record<Tier, BlockWriter> = { 1: nothing, 2: nothing, 3: nothing }
  const own = () => tiers.map(tier => blocks[tier]).filter(block => block !== nothing)

  return {
    dimension,
    blocks,
    get bytes() {
      return own().reduce((sum, block) => sum + block.bytes, bytesEmpty)
    },

    put(memories) {
      for (const memory of memories) check(memory, dimension)
      const last = new Map(memories.map(memory => [memory.id, memory]))
      for (const tier of tiers) {
        const here = [...last.values()].filter(memory => memory.tier === tier)
        const elsewhere = [...last.values()].filter(memory => memory.tier !== tier)
        blocks[tier].remove(elsewhere.map(memory => memory.id))
        if (here.length === 0) continue
        if (blocks[tier] === nothing) blocks[tier] = createBlock(tier, codec, termsOf)
        blocks[tier].put(here)
      }
    },

    remove(ids) {
      for (const block of own()) block.remove(ids)
    },

    has: id => own().some(block => block.has(id)),

    find(id) {
      for (const block of own()) {
        const memory = block.find(id)
        if (memory) return memory
      }
      return undefined
    },

    trim() {
      for (const block of own()) block.trim()
    },
  }
}

/** An image without memories. */
const bytesEmpty = 1_500

const emptyBlocks = new Map<Codec, BlockWriter>()

/** Stands for every tier without memories: a block of its own would take 19 KB of objects. */
function emptyBlockOf(codec: Codec): BlockWriter {
  const known = emptyBlocks.get(codec)
  if (known) return known
  const block = createBlock(1, codec, () => [])
  emptyBlocks.set(codec, block)
  return block
}

function check({ id, vector }: EmbeddedMemory, dimension: number) {
  if (!isUuid(id)) throw new TypeError('A memory id is a lower-case UUID')
  if (vector.length !== dimension) {
    throw new TypeError(
      `A vector of ${vector.length} numbers does not belong to a space of ${dimension}`,
    )
  }
}
