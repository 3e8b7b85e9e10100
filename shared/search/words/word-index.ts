import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'
import { writeHash64 } from '#shared/search/columns/text-hash.ts'
import { KeyTable } from '#shared/search/columns/key-table.ts'
import { PostingLists, removedSlot, createPostings } from '#shared/search/words/posting-lists.ts'

/** The part of a word index that a search uses. */
export type ReadonlyWordIndex = Pick<
  WordIndex,
  'count' | 'meanLength' | 'documentFrequency' | 'scoreRows'
>

export type WeightedTerm = { term: string; weight: number }

const lengthMax = 0xffff

/** The row of a dead slot: beyond every row. */
export const deadRow = 0xffffffff

/** Scratch shared by all instances: nothing here runs across an `await`. */
const scratchPostings = createPostings()
const scratchHash = new Uint32Array(2)
let matchingOffsets = new Uint32Array(0)
let matchingCount = 0

/** An inverted index with BM25 over the texts of a tier, one per slot. It stores 64-bit hashes of terms, no strings. */
export class WordIndex {
  readonly #termsOf: (text: string) => string[]
  readonly #rowBySlot: () => Uint32Array
  readonly #k1: number
  readonly #b: number
  readonly #lists = new PostingLists()
  #vocabulary = new KeyTable(2)
  /** Terms in the text of each slot. */
  #lengths = new Uint16Array(0)
  #slotCount = 0
  /** Copies with each term; they are not in its list. */
  #copies = new Uint32Array(0)
  #count = 0
  #deadCount = 0
  #totalLength = 0
  #packLater: boolean

  constructor(options: {
    /** The terms of a text, repetitions included. */
    termsOf: (text: string) => string[]
    /** The row of each slot; `deadRow` for a dead slot. */
    rowBySlot: () => Uint32Array
    /** BM25's saturation of repeated terms. */
    k1?: number
    /** BM25's length normalisation: 0 none, 1 full. */
    b?: number
    /** Packs nothing before the first `trim` or `packSteps`; for loading. */
    packLater?: boolean
  }) {
    const { termsOf, rowBySlot, k1 = 1.2, b = 0.75, packLater = false } = options
    this.#termsOf = termsOf
    this.#rowBySlot = rowBySlot
    this.#k1 = k1
    this.#b = b
    this.#packLater = packLater
  }

  /** Rows indexed, copies among them. */
  get count(): number {
    return this.#count
  }

  /** Mean length of a row in terms, with repetitions; 0 when there are no rows. */
  get meanLength(): number {
    return this.#count > 0 ? this.#totalLength / this.#count : 0
  }

  get bytes(): number {
    const columns = this.#lengths.byteLength + this.#copies.byteLength
    return columns + this.#vocabulary.bytes + this.#lists.bytes
  }

  /** Number of rows with the term, copies among them. */
  documentFrequency(term: string): number {
    const number = this.#termNumber(term)
    if (number < 0) return 0
    const copies = this.#copies[number] ?? 0
    if (this.#deadCount === 0) return this.#lists.count(number) + copies
    // Dead slots stay in the lists until `pick`.
    this.#lists.read(number, scratchPostings)
    const { slots, count: postingCount } = scratchPostings
    const rows = this.#rowBySlot()
    let rowCount = copies
    for (let i = 0; i < postingCount; i++) if (rows[slots[i]!]! !== deadRow) rowCount++
    return rowCount
  }

  /**
   * Writes for each row of [first, end) the sum over the terms of weight times BM25 saturation. Weights include the idf.
   *
   * @param sums by distance from the first row; all 0 before
   * @param numberBySlot what counts as the row of a slot: texts in place of rows
   * @returns distances from the first row with a sum, each once, in no order; overwritten by the next call on any instance
   */
  scoreRows(
    terms: readonly WeightedTerm[],
    first: number,
    end: number,
    sums: Float32Array,
    numberBySlot: Uint32Array = this.#rowBySlot(),
  ): Uint32Array {
    if (matchingOffsets.length < end - first) matchingOffsets = new Uint32Array(end - first)
    matchingCount = 0
    for (const { term, weight } of terms) {
      const number = weight > 0 ? this.#termNumber(term) : -1
      if (number >= 0) this.#addScores(number, weight, { first, end, sums, numberBySlot })
    }
    return matchingOffsets.subarray(0, matchingCount)
  }

  /** Indexes the text of a new slot; slots ascend. */
  add(slot: number, text: string) {
    const terms = this.#termsOf(text)
    for (const term of terms) {
      const number = this.#termNumber(term)
      this.#lists.add(number >= 0 ? number : this.#vocabulary.add(scratchHash), slot)
    }
    this.#countText(slot, terms.length)
    if (!this.#packLater && this.#lists.needsPacking) this.#lists.pack()
  }

  /** Counts the text of a new slot that is a copy of another slot's: it enters no list. */
  addCopy(slot: number, text: string) {
    const terms = this.#termsOf(text)
    for (const term of new Set(terms)) {
      const number = this.#termNumber(term)
      this.#copies = ensureCapacity(this.#copies, number + 1)
      this.#copies[number]!++
    }
    this.#countText(slot, terms.length)
  }

  /** Marks a slot as dead: from now on `rowBySlot` is `deadRow` for it. */
  remove(slot: number) {
    this.#totalLength -= this.#lengths[slot]!
    this.#count--
    this.#deadCount++
  }

  /** As `remove`, of a copy. */
  removeCopy(slot: number, text: string) {
    for (const term of new Set(this.#termsOf(text))) this.#copies[this.#termNumber(term)]!--
    this.#totalLength -= this.#lengths[slot]!
    this.#count--
  }

  #countText(slot: number, length: number) {
    this.#lengths = ensureCapacity(this.#lengths, slot + 1)
    this.#lengths[slot] = Math.min(lengthMax, length)
    this.#totalLength += this.#lengths[slot]
    this.#slotCount = slot + 1
    this.#count++
  }

  /** Keeps these slots only, ascending, and numbers them from 0. */
  pick(slots: Uint32Array) {
    const numbers = new Uint32Array(this.#slotCount).fill(removedSlot)
    for (let i = 0; i < slots.length; i++) numbers[slots[i]!] = i
    const terms = this.#lists.renumber(slot => numbers[slot]!)
    this.#vocabulary = this.#vocabulary.pick(terms)
    this.#copies = selectRows(ensureCapacity(this.#copies, (terms.at(-1) ?? -1) + 1), terms)
    this.#lengths = selectRows(this.#lengths, slots)
    this.#slotCount = slots.length
    this.#deadCount = 0
  }

  /** What `restore` takes; no slot is dead. */
  save() {
    return {
      lists: this.#lists.save(),
      vocabulary: this.#vocabulary.save(),
      lengths: this.#lengths.subarray(0, this.#slotCount),
      copies: this.#copies,
      count: this.#count,
      totalLength: this.#totalLength,
    }
  }

  restore(saved: ReturnType<WordIndex['save']>) {
    this.#lists.restore(saved.lists)
    this.#vocabulary.restore(saved.vocabulary)
    this.#lengths = saved.lengths
    this.#slotCount = saved.lengths.length
    this.#copies = saved.copies
    this.#count = saved.count
    this.#totalLength = saved.totalLength
    this.#packLater = false
  }

  /** Packs the lists in steps of some milliseconds; nothing may use the index before the last. */
  *packSteps(): Generator<void, void, void> {
    yield* this.#lists.packSteps()
    this.#packLater = false
  }

  /** Frees unused capacity. */
  trim() {
    if (this.#lists.hasUnpacked) this.#lists.pack()
    this.#packLater = false
    this.#lengths = trimToLength(this.#lengths, this.#slotCount)
    this.#vocabulary.trim()
  }

  /** Returns -1 for an unknown term; its hash is then in `scratchHash`. */
  #termNumber(term: string): number {
    writeHash64(term, scratchHash)
    return this.#vocabulary.find(scratchHash)
  }

  #addScores(
    term: number,
    weight: number,
    scored: { first: number; end: number; sums: Float32Array; numberBySlot: Uint32Array },
  ) {
    const { first, end, sums, numberBySlot } = scored
    this.#lists.read(term, scratchPostings)
    const { slots, frequencies, count: postingCount } = scratchPostings
    const lengths = this.#lengths
    const k1 = this.#k1
    const b = this.#b
    // The formula weight * f * (k1 + 1) / (f + k1 * (1 - b + b * length / meanLength)), hoisted.
    const numerator = weight * (k1 + 1)
    const base = k1 * (1 - b)
    const perTerm = this.#totalLength > 0 ? (k1 * b * this.#count) / this.#totalLength : 0
    for (let i = 0; i < postingCount; i++) {
      const slot = slots[i]!
      const row = numberBySlot[slot]!
      if (row < first || row >= end) continue
      const offset = row - first
      const sum = sums[offset]!
      if (sum === 0) matchingOffsets[matchingCount++] = offset
      sums[offset] =
        sum + (numerator * frequencies[i]!) / (frequencies[i]! + base + perTerm * lengths[slot]!)
    }
  }
}
