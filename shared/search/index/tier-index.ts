import type { Steps } from '#shared/core/event-loop.ts'
import { metadataName, passes, predicateOf, type Condition } from '#shared/domain/condition.ts'
import { isSaidByProgram } from '#shared/domain/origin.ts'
import type { EmbeddedMemory, Memory, Role, Tier } from '#shared/domain/memory.ts'
import type { Codec } from '#shared/search/vectors/codec.ts'
import {
  ensureCapacity,
  insertValues,
  lowerBound,
  removeValues,
  trimToLength,
} from '#shared/search/columns/column.ts'
import type { MessagePiece } from '#shared/search/index/memory-columns.ts'
import { SlotStore, type TextTest } from '#shared/search/index/slot-store.ts'
import { VectorMatrix } from '#shared/search/vectors/vector-matrix.ts'
import type { ReadonlyWordIndex } from '#shared/search/words/word-index.ts'

/** The part of a tier index that a search uses. */
export type ReadonlyTierIndex = Omit<
  TierIndex,
  'bytes' | 'has' | 'find' | 'put' | 'remove' | 'trim' | 'save' | 'restore'
>

/** Objects and empty arrays of an index without rows, measured. */
const emptyTierIndexBytes = 19_000

/**
 * The memories of one tier in chronological order: by `at`, then by id. Rows are numbered from 0
 * without gaps. `put` and `remove` renumber them, so a row number is valid while `version` is the same.
 */
export class TierIndex {
  readonly #tier: Tier
  readonly #vectors: VectorMatrix
  readonly #slotStore: SlotStore
  #slotByRow = new Uint32Array(0)
  #version = 0

  /** @param termsOf The terms of a text, repetitions included. */
  constructor(
    tier: Tier,
    codec: Codec,
    termsOf: (text: string) => string[],
    { packLater = false } = {},
  ) {
    this.#tier = tier
    this.#vectors = new VectorMatrix(codec)
    this.#slotStore = new SlotStore(tier, termsOf, packLater)
  }

  /** Changes with every change of the rows. */
  get version(): number {
    return this.#version
  }

  get count(): number {
    return this.#vectors.count
  }

  get bytes(): number {
    return (
      emptyTierIndexBytes + this.#vectors.bytes + this.#slotStore.bytes + 4 * this.#slotByRow.length
    )
  }

  get wordIndex(): ReadonlyWordIndex {
    return this.#slotStore.wordIndex
  }

  /** Epoch milliseconds, ascending over the rows. */
  timeAt(row: number): number {
    return this.#slotStore.records.timeAt(this.#slotByRow[row]!)
  }

  /** Returns the rows whose time lies in [from, to). */
  range(from: number, to: number): { first: number; end: number } {
    const first = this.#lowerBound(from)
    return { first, end: Math.max(first, this.#lowerBound(to)) }
  }

  /**
   * Finds for each vector the best `k` rows of [first, end) by approximate cosine, best first, in one pass of short steps;
   * nothing may change before the last. Rows with one text give its home alone.
   */
  *approximateNearest(
    vectors: readonly Float32Array[],
    k: number,
    first: number,
    end: number,
  ): Steps<Uint32Array[]> {
    const found = yield* this.#vectors.approximateNearest(vectors, k, first, end)
    if (!this.hasCopies) return found
    const { copies } = this.#slotStore
    return found.map(rows => rows.filter(row => !copies.isCopy(this.#slotByRow[row]!)))
  }

  #homeRows(rows: ArrayLike<number>): ArrayLike<number> {
    return this.hasCopies ? Uint32Array.from(rows, row => this.homeRow(row)) : rows
  }

  /** Returns cosines of some rows, in their order, with a mean error of 0.0003. */
  approximateCosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    return this.#vectors.approximateCosines(vector, this.#homeRows(rows))
  }

  /** Returns the cosines of some rows, in their order; approximate ones differ by about 0.001 at most. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    return this.#vectors.cosines(vector, this.#homeRows(rows))
  }

  /** Whether any text has several rows. One of them, its home, has the words and the vector of all. */
  get hasCopies(): boolean {
    return !this.#slotStore.copies.isEmpty
  }

  /** Number of different texts. */
  get textCount(): number {
    return this.#slotStore.copies.textCount
  }

  /** Above the numbers of all texts. */
  get textsEnd(): number {
    return this.#slotStore.copies.textsEnd
  }

  /** The number of the text of each slot, for `wordIndex.scoreRows`. */
  get textBySlot(): Uint32Array {
    return this.#slotStore.copies.textBySlot
  }

  /** The number of the text of a row: equal for equal texts. */
  textOf(row: number): number {
    return this.textBySlot[this.#slotByRow[row]!]!
  }

  /** The row that has the words of a text. */
  homeOfText(text: number): number {
    return this.#slotStore.row(this.#slotStore.copies.homeOfText(text))
  }

  /** Number of rows with the text of a row. */
  copyCount(row: number): number {
    return this.#slotStore.copies.countOf(this.#slotByRow[row]!)
  }

  /** The row that has the words of a row's text. */
  homeRow(row: number): number {
    return this.#slotStore.row(this.#slotStore.copies.home(this.#slotByRow[row]!))
  }

  /** The newest row with the text of a row. */
  newestRow(row: number): number {
    return this.#slotStore.row(this.#slotStore.copies.newest(this.#slotByRow[row]!))
  }

  /** Whether the text of a row passes a test, which is done once for each text. */
  passes(row: number, test: TextTest): boolean {
    return this.#slotStore.passes(this.#slotByRow[row]!, test)
  }

  /** Decodes the text; the accessors of single fields below do not. */
  memory(row: number): Memory {
    return this.#slotStore.readMemory(this.#slotByRow[row]!)
  }

  text(row: number): string {
    return this.#slotStore.records.text(this.#slotByRow[row]!)
  }

  role(row: number): Role {
    return this.#slotStore.records.role(this.#slotByRow[row]!)
  }

  importance(row: number): number | undefined {
    return this.#slotStore.records.importance(this.#slotByRow[row]!)
  }

  /** Returns whether rows, of a session or the core, meet a condition; valid while `version` is the same. */
  matcher(condition: Condition, session: string | null): (row: number) => boolean {
    const { records } = this.#slotStore
    const fields: Record<string, (row: number) => string | number | boolean | undefined> = {
      role: row => this.role(row),
      tier: () => this.#tier,
      time: row => this.timeAt(row),
      importance: row => this.importance(row),
      name: row => this.speaker(row),
      shared: row => (records.tagsAndAuthor(this.#slotByRow[row]!).tags ? true : undefined),
      session: () => session ?? undefined,
    }
    return predicateOf<number>(condition, test => {
      const read = fields[test.field]
      if (metadataName(test) === undefined) return row => passes(test, read?.(row))
      const holds = records.metadataMatcher(test)
      return row => holds(this.#slotByRow[row]!)
    })
  }

  /** Whether a model or a program wrote its words, whatever the role. */
  isSaidByProgram(row: number): boolean {
    return isSaidByProgram(this.#slotStore.records.metadata(this.#slotByRow[row]!))
  }

  tokens(row: number): number {
    return this.#slotStore.records.tokens(this.#slotByRow[row]!)
  }

  speaker(row: number): string | undefined {
    return this.#slotStore.records.speaker(this.#slotByRow[row]!)
  }

  /** Who said a fact that an organization shares. */
  author(row: number): string | undefined {
    return this.#slotStore.records.tagsAndAuthor(this.#slotByRow[row]!).author
  }

  piece(row: number): MessagePiece | undefined {
    return this.#slotStore.records.piece(this.#slotByRow[row]!)
  }

  /** Whether it is a reflection, or a fact that an organization shares: not a turn of a conversation. */
  isFact(row: number): boolean {
    if (this.#tier > 1) return true
    return this.author(row) !== undefined
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
    if (memories.length > 0) this.#version++
    const stored = memories.filter(memory => this.has(memory.id))
    const sameTime = new Set(stored.filter(memory => this.#hasSameTime(memory)))
    this.#removeRows(stored.flatMap(memory => (sameTime.has(memory) ? [] : [memory.id])))
    for (const memory of sameTime) this.#replace(memory)
    this.#insert(memories.filter(memory => !sameTime.has(memory)))
    this.#compactSlots()
  }

  /** Removes rows; unknown ids are ignored. */
  remove(ids: readonly string[]) {
    this.#removeRows(ids)
    this.#compactSlots()
  }

  /** What `restore` takes. Nothing of a removed memory is in it. */
  save() {
    if (this.#compactSlots(true)) this.#version++
    return {
      vectors: this.#vectors.save(),
      slots: this.#slotStore.save(),
      slotByRow: this.#slotByRow.subarray(0, this.count),
    }
  }

  restore({ vectors, slots, slotByRow }: ReturnType<TierIndex['save']>) {
    this.#vectors.restore(vectors)
    this.#slotStore.restore(slots)
    this.#slotByRow = slotByRow
  }

  /** Does the expensive part of `trim` in steps; nothing may use the index before the last. */
  *trimSteps(): Generator<void, void, void> {
    yield* this.#vectors.trimSteps()
    yield* this.#slotStore.wordIndex.packSteps()
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

    this.#slotByRow = ensureCapacity(this.#slotByRow, this.count + slots.length)
    insertValues(this.#slotByRow, this.count, positions, slots)
    const vectors = sorted.map((memory, i) => this.#ownVector(slots[i]!, memory))
    this.#vectors.insert(positions, vectors)
    this.#updateSlotRows(positions[0]!)
  }

  #removeRows(ids: readonly string[]) {
    const slots = new Set(ids.map(id => this.#slotStore.find(id)))
    slots.delete(-1)
    if (slots.size === 0) return
    this.#version++
    const rows = Array.from(slots, slot => this.#slotStore.row(slot)).sort((a, b) => a - b)
    this.#markDead(slots)

    removeValues(this.#slotByRow, this.count, rows)
    this.#vectors.remove(rows)
    this.#updateSlotRows(rows[0]!)
  }

  /** Replaces a memory whose time is unchanged, so that its row stays. */
  #replace(memory: EmbeddedMemory) {
    const slot = this.#slotStore.find(memory.id)
    const row = this.#slotStore.row(slot)
    this.#markDead([slot])
    const added = this.#slotStore.add(memory, row)
    this.#slotByRow[row] = added
    this.#vectors.replace(row, this.#ownVector(added, memory))
  }

  /** Marks slots as dead; a copy of a text takes over its vector with its words. */
  #markDead(slots: Iterable<number>) {
    for (const { from, to, slot } of this.#slotStore.markDead(slots)) {
      this.#vectors.copy(from, to)
      this.#slotByRow[to] = slot
    }
  }

  /** The vector of a row; zeros for a copy, whose vector is that of its home. */
  #ownVector(slot: number, { vector }: EmbeddedMemory): Float32Array {
    return this.#slotStore.copies.isCopy(slot) ? new Float32Array(vector.length) : vector
  }

  #hasSameTime(memory: Memory): boolean {
    return this.#slotStore.records.timeAt(this.#slotStore.find(memory.id)) === memory.at
  }

  /** Returns the first row at or after a time; among rows of the same time, at or after an id. */
  #lowerBound(time: number, id?: string): number {
    return lowerBound(this.count, row => {
      const rowTime = this.timeAt(row)
      const isTie = id !== undefined && rowTime === time
      return isTie ? this.#slotStore.id(this.#slotByRow[row]!) < id : rowTime < time
    })
  }

  /** Writes the rows from `from` on into their slots. */
  #updateSlotRows(from: number) {
    for (let row = from; row < this.count; row++) this.#slotStore.setRow(this.#slotByRow[row]!, row)
  }

  #compactSlots(all = false): boolean {
    if (!this.#slotStore.compact(all)) return false
    const { count } = this.#slotStore
    for (let slot = 0; slot < count; slot++) this.#slotByRow[this.#slotStore.row(slot)] = slot
    return true
  }
}

/** Orders rows by time, then by id. */
function compareByTime(a: Memory, b: Memory): number {
  if (a.at !== b.at) return a.at - b.at
  return a.id < b.id ? -1 : 1
}
