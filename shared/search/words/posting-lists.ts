import { ensureCapacity } from '#shared/search/columns/column.ts'

/** The new number of a slot that is left out. */
export const removedSlot = 0xffffffff

/** Unpacked postings that may wait, plus a share of the packed: they take 9 bytes, packed ones 2. */
const recentMin = 4_096
const recentShare = 1 / 4

/** Postings that are packed in one step of a millisecond. */
const stepPostings = 20_000

/** Scratch of `#repack` for all instances: a step does not depend on the last. */
const scratchPostings = createPostings()

/**
 * One list of postings per term, terms numbered from 0. Postings are appended unpacked, as linked lists, and packed
 * together once they are many.
 */
export class PostingLists {
  /** Packed postings; those of term t are bytes starts[t] to starts[t + 1]. */
  #packed = new Uint8Array(0)
  #starts = new Uint32Array(1)
  #packedCount = 0

  /** Numbers from 1, 0 for none: of the newest unpacked posting of a term, and of the one before each. */
  #latest = new Uint32Array(0)
  #previous = new Uint32Array(0)
  #slots = new Uint32Array(0)
  #frequencies = new Uint8Array(0)
  #recentCount = 0

  /** Postings of each term, packed or not. */
  #counts = new Uint32Array(0)
  #termCount = 0

  get bytes(): number {
    const packed = this.#packed.byteLength + this.#starts.byteLength
    const recent =
      this.#latest.byteLength +
      this.#previous.byteLength +
      this.#slots.byteLength +
      this.#frequencies.byteLength
    return packed + recent + this.#counts.byteLength
  }

  /** Counts one occurrence of a term in a slot. Slots of one term must not descend. */
  add(term: number, slot: number) {
    if (term >= this.#termCount) this.#addTerm(term)
    const last = this.#latest[term]!
    if (last > 0 && this.#slots[last - 1] === slot) {
      this.#frequencies[last - 1] = Math.min(frequencyMax, this.#frequencies[last - 1]! + 1)
      return
    }
    const posting = this.#recentCount
    this.#previous = ensureCapacity(this.#previous, posting + 1)
    this.#slots = ensureCapacity(this.#slots, posting + 1)
    this.#frequencies = ensureCapacity(this.#frequencies, posting + 1)
    this.#previous[posting] = last
    this.#slots[posting] = slot
    this.#frequencies[posting] = 1
    this.#latest[term] = ++this.#recentCount
    this.#counts[term]!++
  }

  /** Returns the number of slots with a term. */
  count(term: number): number {
    return this.#counts[term]!
  }

  /** Reads the postings of a term into `postings`, replacing its content. */
  read(term: number, postings: Postings) {
    const starts = this.#starts
    const isPacked = term + 1 < starts.length
    readPostings(
      this.#packed,
      isPacked ? starts[term]! : 0,
      isPacked ? starts[term + 1]! : 0,
      postings,
    )
    const packedCount = postings.count
    const slots = this.#slots
    const frequencies = this.#frequencies
    const previous = this.#previous
    for (let posting = this.#latest[term] ?? 0; posting > 0; posting = previous[posting - 1]!) {
      pushPosting(postings, slots[posting - 1]!, frequencies[posting - 1]!)
    }
    reversePostings(postings, packedCount)
  }

  /** Whether unpacked postings are so many that `pack` pays. */
  get needsPacking(): boolean {
    return this.#recentCount > recentMin + this.#packedCount * recentShare
  }

  get hasUnpacked(): boolean {
    return this.#recentCount > 0
  }

  /** Packs all postings. */
  pack() {
    this.#repack()
  }

  /** Does the same in steps of some milliseconds. Nothing may be read or added before the last. */
  packSteps(): Generator<void, unknown, void> {
    return this.#repackSteps()
  }

  /**
   * Gives slots new numbers in the same order, without those numbered `removedSlot`. Terms with slots are numbered from 0,
   * the others are left out.
   *
   * @returns the former numbers of the remaining terms
   */
  renumber(numberOf: (slot: number) => number): Uint32Array {
    return this.#repack(numberOf)
  }

  /** What `restore` takes; packs all postings. */
  save() {
    if (this.hasUnpacked) this.pack()
    const counts = this.#counts.subarray(0, this.#termCount)
    return { packed: this.#packed, starts: this.#starts, packedCount: this.#packedCount, counts }
  }

  restore(saved: ReturnType<PostingLists['save']>) {
    this.#packed = saved.packed
    this.#starts = saved.starts
    this.#packedCount = saved.packedCount
    this.#counts = saved.counts
    this.#termCount = saved.counts.length
    this.#clearRecent()
  }

  #addTerm(term: number) {
    this.#latest = ensureCapacity(this.#latest, term + 1)
    this.#counts = ensureCapacity(this.#counts, term + 1)
    this.#latest[term] = 0
    this.#counts[term] = 0
    this.#termCount = term + 1
  }

  #repack(numberOf?: (slot: number) => number): Uint32Array {
    const steps = this.#repackSteps(numberOf)
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
    }
  }

  *#repackSteps(numberOf?: (slot: number) => number): Generator<void, Uint32Array, void> {
    let postingsOfStep = 0
    const bytes = new Uint8Array(this.#packed.length + this.#recentCount * postingBytesMax)
    const ends = new Uint32Array(this.#termCount + 1)
    const remainingTerms = new Uint32Array(this.#termCount)
    let remainingCount = 0
    let end = 0
    this.#packedCount = 0
    for (let term = 0; term < this.#termCount; term++) {
      this.read(term, scratchPostings)
      if (numberOf) renumberPostings(scratchPostings, numberOf)
      if (scratchPostings.count === 0) continue
      end = writePostings(bytes, end, scratchPostings)
      this.#packedCount += scratchPostings.count
      // In place: term is never less than remainingCount.
      this.#counts[remainingCount] = scratchPostings.count
      remainingTerms[remainingCount++] = term
      ends[remainingCount] = end
      postingsOfStep += scratchPostings.count + 1
      if (postingsOfStep < stepPostings) continue
      postingsOfStep = 0
      yield
    }
    this.#packed = bytes.slice(0, end)
    this.#starts = ends.slice(0, remainingCount + 1)
    this.#counts = this.#counts.slice(0, remainingCount)
    this.#termCount = remainingCount
    this.#clearRecent()
    return remainingTerms.slice(0, remainingCount)
  }

  #clearRecent() {
    this.#latest = new Uint32Array(this.#termCount)
    this.#previous = new Uint32Array(0)
    this.#slots = new Uint32Array(0)
    this.#frequencies = new Uint8Array(0)
    this.#recentCount = 0
  }
}

/** Reverses the postings from `from` on, which were read newest first. */
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
  let count = 0
  for (let i = 0; i < postings.count; i++) {
    const slot = numberOf(postings.slots[i]!)
    if (slot === removedSlot) continue
    postings.slots[count] = slot
    postings.frequencies[count++] = postings.frequencies[i]!
  }
  postings.count = count
}

/** The slots that contain a term, ascending, and its frequency in each. */
export type Postings = { slots: Uint32Array; frequencies: Uint8Array; count: number }

/** Largest stored frequency of a term in a text; BM25 is saturated before. */
const frequencyMax = 255

/** Most bytes of one packed posting. */
const postingBytesMax = 6

export function createPostings(): Postings {
  return { slots: new Uint32Array(0), frequencies: new Uint8Array(0), count: 0 }
}

/** Appends a posting. */
function pushPosting(postings: Postings, slot: number, frequency: number) {
  postings.slots = ensureCapacity(postings.slots, postings.count + 1)
  postings.frequencies = ensureCapacity(postings.frequencies, postings.count + 1)
  postings.slots[postings.count] = slot
  postings.frequencies[postings.count] = frequency
  postings.count++
}

/**
 * Packs a list of ascending slots into `bytes` from `start` on, and returns the end. A posting is the delta to the slot
 * before as a varint (7 bits a byte), whose lowest bit says that a byte with a frequency above 1 follows. About 1.6 bytes
 * a posting.
 */
function writePostings(bytes: Uint8Array, start: number, postings: Postings): number {
  let end = start
  let previousSlot = 0
  for (let i = 0; i < postings.count; i++) {
    const slot = postings.slots[i]!
    const frequency = postings.frequencies[i]!
    let varint = (slot - previousSlot) * 2 + (frequency > 1 ? 1 : 0)
    for (; varint > 0x7f; varint >>>= 7) bytes[end++] = (varint & 0x7f) | 0x80
    bytes[end++] = varint
    if (frequency > 1) bytes[end++] = frequency
    previousSlot = slot
  }
  return end
}

/** Unpacks the list between `start` and `end` into `postings`, replacing its content. */
function readPostings(bytes: Uint8Array, start: number, end: number, postings: Postings) {
  // A posting takes a byte or more, so this capacity suffices.
  postings.slots = ensureCapacity(postings.slots, end - start)
  postings.frequencies = ensureCapacity(postings.frequencies, end - start)
  const { slots, frequencies } = postings
  let count = 0
  let slot = 0
  for (let at = start; at < end;) {
    let byte = bytes[at++]!
    let varint = byte & 0x7f
    for (let shift = 7; byte > 0x7f; shift += 7) {
      byte = bytes[at++]!
      varint |= (byte & 0x7f) << shift
    }
    slot += varint >>> 1
    slots[count] = slot
    frequencies[count] = varint & 1 ? bytes[at++]! : 1
    count++
  }
  postings.count = count
}
