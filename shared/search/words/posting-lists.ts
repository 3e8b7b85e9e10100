import { ensureCapacity } from '#shared/search/columns/column.ts'
import {
  createPostings,
  postingBytesMax,
  pushPosting,
  readPostings,
  frequencyMax,
  writePostings,
  type Postings,
} from '#shared/search/words/postings.ts'

/** A list of postings for each term, terms being numbers from 0. */
export type PostingLists = {
  readonly bytes: number
  /** Counts a term in the text of a slot: never a lower slot than before. */
  add(term: number, slot: number): void
  /** Number of slots that hold a term. */
  count(term: number): number
  /** Reads the postings of a term over what `postings` held. */
  read(term: number, postings: Postings): void
  /** True once so much is not packed that packing pays. */
  readonly needsPacking: boolean
  /** Packs everything, which changes nothing but the bytes it takes. */
  pack(): void
  /**
   * Gives slots new numbers, in the same order, or leaves them out as `gone`.
   * Terms without slots are left out too, the others numbered from 0: returned
   * are their former numbers.
   */
  renumber(numberOf: (slot: number) => number): Uint32Array
}

/** The new number of a slot that is left out. */
export const removedSlot = 0xffffffff

/** Recent postings take 9 bytes instead of 2: this many may wait, and a quarter of those packed. */
const recentMin = 4_096
const recentShare = 1 / 4

/** One list is repacked at a time, whoever owns it. */
const scratchPostings = createPostings()

export function createPostingLists(): PostingLists {
  /** Packed postings of term t: from starts[t] to starts[t + 1]. */
  let packed = new Uint8Array(0)
  let starts = new Uint32Array(1)
  let packedCount = 0

  /** Recent postings, each pointing to the one of its term before it; both numbered from 1. */
  let latest = new Uint32Array(0)
  let previous = new Uint32Array(0)
  let slots = new Uint32Array(0)
  let frequencies = new Uint8Array(0)
  let recentCount = 0

  let counts = new Uint32Array(0)
  let termCount = 0

  function read(term: number, postings: Postings) {
    const inPacked = term + 1 < starts.length
    readPostings(packed, inPacked ? starts[term]! : 0, inPacked ? starts[term + 1]! : 0, postings)
    const packedHere = postings.count
    for (let posting = latest[term] ?? 0; posting > 0; posting = previous[posting - 1]!) {
      pushPosting(postings, slots[posting - 1]!, frequencies[posting - 1]!)
    }
    reversePostings(postings, packedHere)
  }

  function repack(numberOf?: (slot: number) => number): Uint32Array {
    const bytes = new Uint8Array(packed.length + recentCount * postingBytesMax)
    const ends = new Uint32Array(termCount + 1)
    const kept = new Uint32Array(termCount)
    let keptCount = 0
    let end = 0
    packedCount = 0
    for (let term = 0; term < termCount; term++) {
      read(term, scratchPostings)
      if (numberOf) renumberPostings(scratchPostings, numberOf)
      if (scratchPostings.count === 0) continue
      end = writePostings(bytes, end, scratchPostings)
      packedCount += scratchPostings.count
      // Reading goes on behind: term is never less than keptCount.
      counts[keptCount] = scratchPostings.count
      kept[keptCount++] = term
      ends[keptCount] = end
    }
    packed = bytes.slice(0, end)
    starts = ends.slice(0, keptCount + 1)
    counts = counts.slice(0, keptCount)
    termCount = keptCount
    latest = new Uint32Array(keptCount)
    previous = new Uint32Array(0)
    slots = new Uint32Array(0)
    frequencies = new Uint8Array(0)
    recentCount = 0
    return kept.slice(0, keptCount)
  }

  return {
    get bytes() {
      const columns = [packed, starts, counts, latest, previous, slots, frequencies]
      return columns.reduce((sum, column) => sum + column.byteLength, 0)
    },

    add(term, slot) {
      if (term >= termCount) {
        latest = ensureCapacity(latest, term + 1)
        counts = ensureCapacity(counts, term + 1)
        latest[term] = 0
        counts[term] = 0
        termCount = term + 1
      }
      const last = latest[term]!
      if (last > 0 && slots[last - 1] === slot) {
        frequencies[last - 1] = Math.min(frequencyMax, frequencies[last - 1]! + 1)
        return
      }
      previous = ensureCapacity(previous, recentCount + 1)
      slots = ensureCapacity(slots, recentCount + 1)
      frequencies = ensureCapacity(frequencies, recentCount + 1)
      previous[recentCount] = last
      slots[recentCount] = slot
      frequencies[recentCount] = 1
      latest[term] = ++recentCount
      counts[term]!++
    },

    count: term => counts[term]!,
    read,

    get needsPacking() {
      return recentCount > recentMin + packedCount * recentShare
    },
    pack() {
      repack()
    },
    renumber: repack,
  }
}

/** Recent postings were met newest first. */
function reversePostings({ slots, frequencies, count }: Postings, from: number) {
  for (let a = from, b = count - 1; a < b; a++, b--) {
    const slot = slots[a]!
    const frequency = frequencies[a]!
    slots[a] = slots[b]!
    frequencies[a] = frequencies[b]!
    slots[b] = slot
    frequencies[b] = frequency
  }
}

function renumberPostings(postings: Postings, numberOf: (slot: number) => number) {
  let kept = 0
  for (let i = 0; i < postings.count; i++) {
    const slot = numberOf(postings.slots[i]!)
    if (slot === removedSlot) continue
    postings.slots[kept] = slot
    postings.frequencies[kept++] = postings.frequencies[i]!
  }
  postings.count = kept
}
