import type { EmbeddedMemory, Memory, Role, Tier } from '#shared/domain/memory.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { createSlotStore } from '#shared/search/index/slot-store.ts'
import { createVectorMatrix, type NearestRows } from '#shared/search/vectors/vector-matrix.ts'
import type { WordIndex } from '#shared/search/words/word-index.ts'

/**
 * The memories of one tier in chronological order: by `at`, then by id. Rows are
 * numbered from 0 without gaps; a put or remove may give them other numbers, so a
 * row number is good until the next `await`.
 */
export type TierIndex = {
  readonly count: number
  /** Epoch milliseconds, ascending over the rows. */
  timeAt(row: number): number
  /** The rows whose time lies in [from, to). */
  range(from: number, to: number): { first: number; end: number }
  /**
   * The best `k` rows of [first, end), all rows by default, by cosine with a unit
   * vector; best first, of equals the later row first.
   */
  nearest(vector: Float32Array, k: number, first?: number, end?: number): NearestRows
  /** The rows `nearest` looks at more closely: the best `k` by first sight, best first. */
  approximateNearest(vector: Float32Array, k: number, first: number, end: number): Uint32Array
  /** The cosines of some rows by first sight, in their order: off by 0.0003 on average. */
  approximateCosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  /** The cosines of some rows, in their order; `nearest` gives the same to about 0.001. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  readonly wordIndex: WordIndex
  /** Decodes the text; the other fields below do not. */
  memory(row: number): Memory
  role(row: number): Role
  importance(row: number): number | undefined
  tokens(row: number): number
  speaker(row: number): string | undefined
  /** Stands for itself: a fact that a team shares, no turn of a conversation. */
  isFact(row: number): boolean
  /** A number equal for equal texts (NFC, trimmed), and 53 bits apart for others. */
  textHash(row: number): number
}

/** What an image does to its blocks. */
export type TierIndexWriter = TierIndex & {
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
const emptyTierIndexBytes = 19_000

/** An empty block. */
export function createTierIndex(
  tier: Tier,
  codec: Codec,
  termsOf: (text: string) => string[],
): TierIndexWriter {
  const vectors = createVectorMatrix(codec)
  const slotStore = createSlotStore(tier, termsOf)
  let slotByRow = new Uint32Array(0)

  const timeAt = (row: number) => slotStore.records.timeAt(slotByRow[row]!)

  /** The first row that is not earlier; where times are the same, the id decides. */
  function lowerBound(time: number, id?: string): number {
    let low = 0
    let high = vectors.count
    while (low < high) {
      const middle = (low + high) >> 1
      const there = timeAt(middle)
      const same = id !== undefined && there === time
      if (there < time || (same && slotStore.id(slotByRow[middle]!) < id)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Rows from here on tell their slots where they are. */
  function updateSlotRows(from: number) {
    for (let row = from; row < vectors.count; row++) slotStore.setRow(slotByRow[row]!, row)
  }

  function insert(memories: readonly EmbeddedMemory[]) {
    if (memories.length === 0) return
    const sorted = memories.toSorted(compareByTime)
    const positions = sorted.map(memory => lowerBound(memory.at, memory.id))
    const slots = sorted.map((memory, i) => slotStore.add(memory, positions[i]! + i))

    let end = vectors.count
    slotByRow = ensureCapacity(slotByRow, end + slots.length)
    for (let i = slots.length - 1; i >= 0; i--) {
      const position = positions[i]!
      slotByRow.copyWithin(position + i + 1, position, end)
      slotByRow[position + i] = slots[i]!
      end = position
    }
    vectors.insert(
      positions,
      sorted.map(memory => memory.vector),
    )
    updateSlotRows(positions[0]!)
  }

  function remove(ids: readonly string[]) {
    const slots = new Set(ids.map(id => slotStore.find(id)))
    slots.delete(-1)
    if (slots.size === 0) return
    const rows = Array.from(slots, slot => slotStore.row(slot)).sort((a, b) => a - b)
    for (const slot of slots) slotStore.markDead(slot)

    let writeRow = rows[0]!
    for (let i = 0; i < rows.length; i++) {
      const next = rows[i + 1] ?? vectors.count
      slotByRow.copyWithin(writeRow, rows[i]! + 1, next)
      writeRow += next - rows[i]! - 1
    }
    vectors.remove(rows)
    updateSlotRows(rows[0]!)
  }

  /** Writes a memory over what its row held; its time is unchanged, so it stays where it is. */
  function replace(memory: EmbeddedMemory) {
    const slot = slotStore.find(memory.id)
    const row = slotStore.row(slot)
    slotStore.markDead(slot)
    slotByRow[row] = slotStore.add(memory, row)
    vectors.replace(row, memory.vector)
  }

  function compactSlots() {
    if (!slotStore.compact()) return
    for (let slot = 0; slot < slotStore.count; slot++) slotByRow[slotStore.row(slot)] = slot
  }

  return {
    get count() {
      return vectors.count
    },
    get bytes() {
      return emptyTierIndexBytes + vectors.bytes + slotStore.bytes + slotByRow.byteLength
    },
    timeAt,
    range(from, to) {
      const first = lowerBound(from)
      return { first, end: Math.max(first, lowerBound(to)) }
    },
    nearest(vector, k, first = 0, end = vectors.count) {
      return vectors.nearest(vector, k, Math.max(0, first), Math.min(end, vectors.count))
    },
    approximateNearest: (vector, k, first, end) =>
      vectors.approximateNearest(vector, k, first, end),
    approximateCosines: (vector, rows) => vectors.approximateCosines(vector, rows),
    cosines: (vector, rows) => vectors.cosines(vector, rows),
    wordIndex: slotStore.wordIndex,
    memory: row => slotStore.readMemory(slotByRow[row]!),
    role: row => slotStore.records.role(slotByRow[row]!),
    importance: row => slotStore.records.importance(slotByRow[row]!),
    tokens: row => slotStore.records.tokens(slotByRow[row]!),
    speaker: row => slotStore.records.speaker(slotByRow[row]!),
    isFact: row => slotStore.records.tagsAndAuthor(slotByRow[row]!).author !== undefined,
    textHash: row => slotStore.records.textHash(slotByRow[row]!),
    has: id => slotStore.find(id) >= 0,
    find(id) {
      const slot = slotStore.find(id)
      return slot < 0 ? undefined : slotStore.readMemory(slot)
    },

    put(memories) {
      const existing = memories.filter(memory => slotStore.find(memory.id) >= 0)
      const [sameTime, timeChanged] = [
        existing.filter(hasSameTime),
        existing.filter(memory => !hasSameTime(memory)),
      ]
      remove(timeChanged.map(memory => memory.id))
      sameTime.forEach(replace)
      const there = new Set(sameTime.map(memory => memory.id))
      insert(memories.filter(memory => !there.has(memory.id)))
      compactSlots()
    },

    remove(ids) {
      remove(ids)
      compactSlots()
    },

    trim() {
      vectors.trim()
      slotStore.trim()
      slotByRow = trimToLength(slotByRow, vectors.count)
    },
  }

  function hasSameTime(memory: Memory): boolean {
    return slotStore.records.timeAt(slotStore.find(memory.id)) === memory.at
  }
}

function compareByTime(a: Memory, b: Memory): number {
  if (a.at !== b.at) return a.at - b.at
  return a.id < b.id ? -1 : 1
}
