import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'
import { writeHash64 } from '#shared/search/columns/text-hash.ts'
import { createKeyTable } from '#shared/search/columns/key-table.ts'
import { createPostingLists, removedSlot } from '#shared/search/words/posting-lists.ts'
import { createPostings } from '#shared/search/words/postings.ts'

/** Which rows of a block hold which words. */
export type WordIndex = {
  /** Rows indexed. */
  readonly count: number
  /** Mean length of a row in terms, repetitions counted; 0 when there are no rows. */
  readonly meanLength: number
  /** Number of rows holding the term. */
  documentFrequency(term: string): number
  /**
   * Writes for each row of [first, end) the sum over the terms of weight times BM25
   * saturation; without an idf, which the caller multiplies into the weights.
   *
   * @param sums By distance from the first row; all 0 before.
   * @returns where they are not 0 now: distances from the first row, each once, in no
   *   order. Overwritten by the next call, of whichever index.
   */
  scoreRows(
    terms: readonly WeightedTerm[],
    first: number,
    end: number,
    sums: Float32Array,
  ): Uint32Array
}

export type WeightedTerm = { term: string; weight: number }

/** What a block does to its index. A slot stands for one text and never for another. */
export type WordIndexWriter = WordIndex & {
  readonly bytes: number
  /** Slots are added in ascending order. */
  add(slot: number, text: string): void
  /** The slot is dead from now on: `rowsOf` knows no row for it. */
  remove(slot: number): void
  /** Keeps these slots alone, ascending, and numbers them from 0. */
  pick(slots: Uint32Array): void
  /** Gives back the room kept for growing. */
  trim(): void
}

export type WordIndexOptions = {
  /** The terms of a text, repetitions included. */
  termsOf: (text: string) => string[]
  /** The row of each slot, or a number past every row where the slot is dead. */
  rowBySlot: () => Uint32Array
  /** How soon repetitions of a term stop counting. */
  k1?: number
  /** How much a long text is held against its words: 0 not at all, 1 in full. */
  b?: number
}

const lengthMax = 0xffff

/** One list is read at a time, whichever index it belongs to. */
const scratchPostings = createPostings()
const scratchHash = new Uint32Array(2)

let matchingOffsets = new Uint32Array(0)
let matchingCount = 0

/** An empty index. Its vocabulary knows terms by a 64-bit hash alone: no strings are held. */
export function createWordIndex(options: WordIndexOptions): WordIndexWriter {
  const { termsOf, rowBySlot, k1 = 1.2, b = 0.75 } = options
  const lists = createPostingLists()
  let vocabulary = createKeyTable(2)
  /** Terms in the text of each slot. */
  let lengths = new Uint16Array(0)
  let slotCount = 0
  let count = 0
  let totalLength = 0

  function find(term: string): number {
    writeHash64(term, scratchHash)
    return vocabulary.find(scratchHash)
  }

  function findOrAdd(term: string): number {
    const found = find(term)
    return found >= 0 ? found : vocabulary.add(scratchHash)
  }

  function addScores(term: number, weight: number, first: number, end: number, sums: Float32Array) {
    lists.read(term, scratchPostings)
    const { slots, frequencies, count: postings } = scratchPostings
    const rows = rowBySlot()
    const most = weight * (k1 + 1)
    const least = k1 * (1 - b)
    const slope = totalLength > 0 ? (k1 * b * count) / totalLength : 0
    for (let i = 0; i < postings; i++) {
      const slot = slots[i]!
      const row = rows[slot]!
      if (row < first || row >= end) continue
      const offset = row - first
      const sum = sums[offset]!
      if (sum === 0) matchingOffsets[matchingCount++] = offset
      sums[offset] =
        sum + (most * frequencies[i]!) / (frequencies[i]! + least + slope * lengths[slot]!)
    }
  }

  return {
    get count() {
      return count
    },
    get meanLength() {
      return count > 0 ? totalLength / count : 0
    },
    get bytes() {
      return lengths.byteLength + vocabulary.bytes + lists.bytes
    },

    documentFrequency(term) {
      const found = find(term)
      if (found < 0) return 0
      if (count === slotCount) return lists.count(found)
      // Dead slots stay in the lists until they are renumbered.
      lists.read(found, scratchPostings)
      const rows = rowBySlot()
      let rowCount = 0
      for (let i = 0; i < scratchPostings.count; i++)
        if (rows[scratchPostings.slots[i]!]! < count) rowCount++
      return rowCount
    },

    scoreRows(terms, first, end, sums) {
      if (matchingOffsets.length < end - first) matchingOffsets = new Uint32Array(end - first)
      matchingCount = 0
      for (const { term, weight } of terms) {
        const found = weight > 0 ? find(term) : -1
        if (found >= 0) addScores(found, weight, first, end, sums)
      }
      return matchingOffsets.subarray(0, matchingCount)
    },

    add(slot, text) {
      const terms = termsOf(text)
      for (const term of terms) lists.add(findOrAdd(term), slot)
      lengths = ensureCapacity(lengths, slot + 1)
      lengths[slot] = Math.min(lengthMax, terms.length)
      totalLength += lengths[slot]
      slotCount = slot + 1
      count++
      if (lists.needsPacking) lists.pack()
    },

    remove(slot) {
      totalLength -= lengths[slot]!
      count--
    },

    pick(slots) {
      const numbers = new Uint32Array(slotCount).fill(removedSlot)
      for (let i = 0; i < slots.length; i++) numbers[slots[i]!] = i
      vocabulary = vocabulary.pick(lists.renumber(slot => numbers[slot]!))
      lengths = selectRows(lengths, slots)
      slotCount = slots.length
    },

    trim() {
      lists.pack()
      lengths = trimToLength(lengths, slotCount)
      vocabulary.trim()
    },
  }
}
