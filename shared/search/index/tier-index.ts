import type { EmbeddedMemory, Memory, Role, Tier } from '#shared/domain/memory.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import { SlotStore } from '#shared/search/index/slot-store.ts'
import { VectorMatrix, type NearestRows } from '#shared/search/vectors/vector-matrix.ts'
import type { ReadonlyWordIndex } from '#shared/search/words/word-index.ts'

/** What a search uses of a tier. */
export type ReadonlyTierIndex = Omit<
  TierIndex,
  'bytes' | 'has' | 'find' | 'put' | 'remove' | 'trim'
>

/** Objects and empty arrays of an index without rows, measured. */
const emptyTierIndexBytes = 19_000

/**
 * The memories of one tier in chronological order: by `at`, then by id. Rows are numbered from 0
 * without gaps. `put` and `remove` renumber them, so a row number is valid until the next `await`.
 */
export class TierIndex {
  readonly #vectors: VectorMatrix
  readonly #slotStore: SlotStore
  #slotByRow = new Uint32Array(0)

  /** @param termsOf The terms of a text, repetitions included. */
  constructor(tier: Tier, codec: Codec, termsOf: (text: string) => string[]) {
    this.#vectors = new VectorMatrix(codec)
    this.#slotStore = new SlotStore(tier, termsOf)
  }

  get count(): number {
    return this.#vectors.count
  }

  get bytes(): number {
    const slotBytes = this.#slotStore.bytes + this.#slotByRow.byteLength
    return emptyTierIndexBytes + this.#vectors.bytes + slotBytes
  }

  get wordIndex(): ReadonlyWordIndex {
    return this.#slotStore.wordIndex
  }

  /** Epoch milliseconds, ascending over the rows. */
  timeAt(row: number): number {
    return this.#slotStore.records.timeAt(this.#slotByRow[row]!)
  }

  /** The rows whose time lies in [from, to). */
  range(from: number, to: number): { first: number; end: number } {
    const first = this.#lowerBound(from)
    return { first, end: Math.max(first, this.#lowerBound(to)) }
  }

  /**
   * The best `k` rows of [first, end), all rows by default, by cosine with a unit vector; best
   * first, of equals the later row first.
   */
  nearest(vector: Float32Array, k: number, first = 0, end = this.#vectors.count): NearestRows {
    return this.#vectors.nearest(vector, k, Math.max(0, first), Math.min(end, this.#vectors.count))
  }

  /** The best `k` rows of [first, end) by approximate cosine, best first. */
  approximateNearest(vector: Float32Array, k: number, first: number, end: number): Uint32Array {
    return this.#vectors.approximateNearest(vector, k, first, end)
  }

  /** Cosines of some rows, in their order, with a mean error of 0.0003. */
  approximateCosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    return this.#vectors.approximateCosines(vector, rows)
  }

  /** The cosines of some rows, in their order; those of `nearest` differ by about 0.001 at most. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    return this.#vectors.cosines(vector, rows)
  }

  /** Decodes the text; the accessors of single fields below do not. */
  memory(row: number): Memory {
    return this.#slotStore.readMemory(this.#slotByRow[row]!)
  }

  role(row: number): Role {
    return this.#slotStore.records.role(this.#slotByRow[row]!)
  }

  importance(row: number): number | undefined {
    return this.#slotStore.records.importance(this.#slotByRow[row]!)
  }

  tokens(row: number): number {
    return this.#slotStore.records.tokens(this.#slotByRow[row]!)
  }

  speaker(row: number): string | undefined {
    return this.#slotStore.records.speaker(this.#slotByRow[row]!)
  }

  /** Whether the memory is a fact that an organization shares, not a turn of a conversation. */
  isFact(row: number): boolean {
    return this.#slotStore.records.tagsAndAuthor(this.#slotByRow[row]!).author !== undefined
  }

  /** 53 bits of a hash of the text (NFC, trimmed): equal for equal texts. */
  textHash(row: number): number {
    return this.#slotStore.records.textHash(this.#slotByRow[row]!)
  }

  has(id: string): boolean {
    return this.#slotStore.find(id) >= 0
  }

  /** Decodes the text. */
  find(id: string): Memory | undefined {
    const slot = this.#slotStore.find(id)
    return slot < 0 ? undefined : this.#slotStore.readMemory(slot)
  }

  /** Inserts or replaces by id; ids are unique. Vectors have the dimension of the codec. */
  put(memories: readonly EmbeddedMemory[]) {
    const stored = memories.filter(memory => this.has(memory.id))
    const timeChanged = stored.filter(memory => !this.#hasSameTime(memory))
    const sameTime = stored.filter(memory => this.#hasSameTime(memory))
    this.#removeRows(timeChanged.map(memory => memory.id))
    for (const memory of sameTime) this.#replace(memory)
    const replaced = new Set(sameTime.map(memory => memory.id))
    this.#insert(memories.filter(memory => !replaced.has(memory.id)))
    this.#compactSlots()
  }

  /** Unknown ids are ignored. */
  remove(ids: readonly string[]) {
    this.#removeRows(ids)
    this.#compactSlots()
  }

  /** Frees unused capacity. */
  trim() {
    this.#vectors.trim()
    this.#slotStore.trim()
    this.#slotByRow = trimToLength(this.#slotByRow, this.#vectors.count)
  }

  #insert(memories: readonly EmbeddedMemory[]) {
    if (memories.length === 0) return
    const sorted = memories.toSorted(compareByTime)
    const positions = sorted.map(memory => this.#lowerBound(memory.at, memory.id))
    const slots = sorted.map((memory, i) => this.#slotStore.add(memory, positions[i]! + i))

    let end = this.#vectors.count
    const slotByRow = ensureCapacity(this.#slotByRow, end + slots.length)
    this.#slotByRow = slotByRow
    // From the end, so that every row moves once.
    for (let i = slots.length - 1; i >= 0; i--) {
      const position = positions[i]!
      slotByRow.copyWithin(position + i + 1, position, end)
      slotByRow[position + i] = slots[i]!
      end = position
    }
    this.#vectors.insert(
      positions,
      sorted.map(memory => memory.vector),
    )
    this.#updateSlotRows(positions[0]!)
  }

  #removeRows(ids: readonly string[]) {
    const slots = new Set(ids.map(id => this.#slotStore.find(id)))
    slots.delete(-1)
    if (slots.size === 0) return
    const rows = Array.from(slots, slot => this.#slotStore.row(slot)).sort((a, b) => a - b)
    for (const slot of slots) this.#slotStore.markDead(slot)

    let writeRow = rows[0]!
    for (let i = 0; i < rows.length; i++) {
      const next = rows[i + 1] ?? this.#vectors.count
      this.#slotByRow.copyWithin(writeRow, rows[i]! + 1, next)
      writeRow += next - rows[i]! - 1
    }
    this.#vectors.remove(rows)
    this.#updateSlotRows(rows[0]!)
  }

  /** Replaces a memory whose time is unchanged, so that its row stays. */
  #replace(memory: EmbeddedMemory) {
    const slot = this.#slotStore.find(memory.id)
    const row = this.#slotStore.row(slot)
    this.#slotStore.markDead(slot)
    this.#slotByRow[row] = this.#slotStore.add(memory, row)
    this.#vectors.replace(row, memory.vector)
  }

  #hasSameTime(memory: Memory): boolean {
    return this.#slotStore.records.timeAt(this.#slotStore.find(memory.id)) === memory.at
  }

  /** The first row at or after a time; among rows of the same time, at or after an id. */
  #lowerBound(time: number, id?: string): number {
    let low = 0
    let high = this.#vectors.count
    while (low < high) {
      const middle = (low + high) >> 1
      const middleTime = this.timeAt(middle)
      const isTie = id !== undefined && middleTime === time
      const isBefore = isTie ? this.#slotStore.id(this.#slotByRow[middle]!) < id : middleTime < time
      if (isBefore) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Writes the rows from `from` on into their slots. */
  #updateSlotRows(from: number) {
    const store = this.#slotStore
    const slotByRow = this.#slotByRow
    const { count } = this.#vectors
    for (let row = from; row < count; row++) store.setRow(slotByRow[row]!, row)
  }

  #compactSlots() {
    const store = this.#slotStore
    if (!store.compact()) return
    for (let slot = 0; slot < store.count; slot++) this.#slotByRow[store.row(slot)] = slot
  }
}

function compareByTime(a: Memory, b: Memory): number {
  if (a.at !== b.at) return a.at - b.at
  return a.id < b.id ? -1 : 1
}
