import type { EmbeddedMemory, Memory, Role, Tier } from '#shared/domain/memory.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import { grown, trimmed } from '#shared/search/columns/column.ts'
import { createShelf } from '#shared/search/index/slot-store.ts'
import { createVectors, type Nearest } from '#shared/search/vectors/vectors.ts'
import type { WordIndex } from '#shared/search/words/word-index.ts'

/**
 * The memories of one tier in chronological order: by `at`, then by id. Rows are
 * numbered from 0 without gaps; a put or remove may give them other numbers, so a
 * row number is good until the next `await`.
 */
export type Block = {
  readonly count: number
  /** Epoch milliseconds, ascending over the rows. */
  at(row: number): number
  /** The rows whose time lies in [from, to). */
  range(from: number, to: number): { first: number; end: number }
  /**
   * The best `k` rows of [first, end), all rows by default, by cosine with a unit
   * vector; best first, of equals the later row first.
   */
  nearest(vector: Float32Array, k: number, first?: number, end?: number): Nearest
  /** The rows `nearest` looks at more closely: the best `k` by first sight, best first. */
  nearRows(vector: Float32Array, k: number, first: number, end: number): Uint32Array
  /** The cosines of some rows by first sight, in their order: off by 0.0003 on average. */
  glances(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  /** The cosines of some rows, in their order; `nearest` gives the same to about 0.001. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  readonly words: WordIndex
  /** Decodes the text; the other fields below do not. */
  memory(row: number): Memory
  role(row: number): Role
  importance(row: number): number | undefined
  tokens(row: number): number
  speakerOf(row: number): string | undefined
  /** Stands for itself: a fact that a team shares, no turn of a conversation. */
  isFact(row: number): boolean
  /** A number equal for equal texts (NFC, trimmed), and 53 bits apart for others. */
  textHash(row: number): number
}

/** What an image does to its blocks. */
export type BlockWriter = Block & {
  readonly bytes: number
  has(id: string): boolean
  /** Decodes the text. */
  find(id: string): Memory | undefined
  /** Inserts or replaces by id, each id once. Vectors have the dimension of the block. */
  put(memories: readonly EmbeddedMemory[]): void
  /** Unknown ids are ignored. */
  remove(ids: readonly string[]): void
  /** Gives back the room kept for growing. */
  trim(): void
}

/** Functions, objects and empty arrays of a block without rows, measured. */
const bytesEmpty = 19_000

/** An empty block. */
export function createBlock(
  tier: Tier,
  codec: Codec,
  termsOf: (text: string) => string[],
): BlockWriter {
  const vectors = createVectors(codec)
  const shelf = createShelf(tier, termsOf)
  let slotOf = new Uint32Array(0)

  const at = (row: number) => shelf.records.at(slotOf[row]!)

  /** The first row that is not earlier; where times are the same, the id decides. */
  function firstFrom(time: number, id?: string): number {
    let low = 0
    let high = vectors.count
    while (low < high) {
      const middle = (low + high) >> 1
      const there = at(middle)
      const same = id !== undefined && there === time
      if (there < time || (same && shelf.id(slotOf[middle]!) < id)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Rows from here on tell their slots where they are. */
  function renumber(from: number) {
    for (let row = from; row < vectors.count; row++) shelf.setRow(slotOf[row]!, row)
  }

  function insert(memories: readonly EmbeddedMemory[]) {
    if (memories.length === 0) return
    const sorted = memories.toSorted(chronologically)
    const places = sorted.map(memory => firstFrom(memory.at, memory.id))
    const slots = sorted.map((memory, i) => shelf.add(memory, places[i]! + i))

    let end = vectors.count
    slotOf = grown(slotOf, end + slots.length)
    for (let i = slots.length - 1; i >= 0; i--) {
      const place = places[i]!
      slotOf.copyWithin(place + i + 1, place, end)
      slotOf[place + i] = slots[i]!
      end = place
    }
    vectors.insert(
      places,
      sorted.map(memory => memory.vector),
    )
    renumber(places[0]!)
  }

  function remove(ids: readonly string[]) {
    const slots = new Set(ids.map(id => shelf.find(id)))
    slots.delete(-1)
    if (slots.size === 0) return
    const rows = Array.from(slots, slot => shelf.row(slot)).sort((a, b) => a - b)
    for (const slot of slots) shelf.drop(slot)

    let kept = rows[0]!
    for (let i = 0; i < rows.length; i++) {
      const next = rows[i + 1] ?? vectors.count
      slotOf.copyWithin(kept, rows[i]! + 1, next)
      kept += next - rows[i]! - 1
    }
    vectors.remove(rows)
    renumber(rows[0]!)
  }

  /** Writes a memory over what its row held; its time is unchanged, so it stays where it is. */
  function replace(memory: EmbeddedMemory) {
    const slot = shelf.find(memory.id)
    const row = shelf.row(slot)
    shelf.drop(slot)
    slotOf[row] = shelf.add(memory, row)
    vectors.replace(row, memory.vector)
  }

  function tidy() {
    if (!shelf.tidy()) return
    for (let slot = 0; slot < shelf.count; slot++) slotOf[shelf.row(slot)] = slot
  }

  return {
    get count() {
      return vectors.count
    },
    get bytes() {
      return bytesEmpty + vectors.bytes + shelf.bytes + slotOf.byteLength
    },
    at,
    range(from, to) {
      const first = firstFrom(from)
      return { first, end: Math.max(first, firstFrom(to)) }
    },
    nearest(vector, k, first = 0, end = vectors.count) {
      return vectors.nearest(vector, k, Math.max(0, first), Math.min(end, vectors.count))
    },
    nearRows: (vector, k, first, end) => vectors.nearRows(vector, k, first, end),
    glances: (vector, rows) => vectors.glances(vector, rows),
    cosines: (vector, rows) => vectors.cosines(vector, rows),
    words: shelf.words,
    memory: row => shelf.read(slotOf[row]!),
    role: row => shelf.records.role(slotOf[row]!),
    importance: row => shelf.records.importance(slotOf[row]!),
    tokens: row => shelf.records.tokens(slotOf[row]!),
    speakerOf: row => shelf.records.speaker(slotOf[row]!),
    isFact: row => shelf.records.label(slotOf[row]!).author !== undefined,
    textHash: row => shelf.records.textHash(slotOf[row]!),
    has: id => shelf.find(id) >= 0,
    find(id) {
      const slot = shelf.find(id)
      return slot < 0 ? undefined : shelf.read(slot)
    },

    put(memories) {
      const held = memories.filter(memory => shelf.find(memory.id) >= 0)
      const [staying, moving] = [held.filter(isInPlace), held.filter(memory => !isInPlace(memory))]
      remove(moving.map(memory => memory.id))
      staying.forEach(replace)
      const there = new Set(staying.map(memory => memory.id))
      insert(memories.filter(memory => !there.has(memory.id)))
      tidy()
    },

    remove(ids) {
      remove(ids)
      tidy()
    },

    trim() {
      vectors.trim()
      shelf.trim()
      slotOf = trimmed(slotOf, vectors.count)
    },
  }

  function isInPlace(memory: Memory): boolean {
    return shelf.records.at(shelf.find(memory.id)) === memory.at
  }
}

function chronologically(a: Memory, b: Memory): number {
  if (a.at !== b.at) return a.at - b.at
  return a.id < b.id ? -1 : 1
}
