import { ensureCapacity } from '#shared/search/columns/column.ts'

/** Which slots hold a term, ascending, and how often. */
export type Postings = { slots: Uint32Array; frequencies: Uint8Array; count: number }

/** A term in one text counts up to here; BM25 is long saturated. */
export const frequencyMax = 255

/** Bytes a posting can take at most. */
export const postingBytesMax = 6

/** Room for one list at a time. */
export function createPostings(): Postings {
  return { slots: new Uint32Array(0), frequencies: new Uint8Array(0), count: 0 }
}

/** Adds a posting at the end; a slot must not be lower than the last. */
export function pushPosting(postings: Postings, slot: number, frequency: number) {
  postings.slots = ensureCapacity(postings.slots, postings.count + 1)
  postings.frequencies = ensureCapacity(postings.frequencies, postings.count + 1)
  postings.slots[postings.count] = slot
  postings.frequencies[postings.count] = frequency
  postings.count++
}

/**
 * Writes a list as bytes from `start` on, and returns where it ends. Each posting
 * is the distance to the slot before, in 7-bit digits, its lowest bit saying that
 * a byte with the number of times follows. About 1.6 bytes a posting.
 */
export function writePostings(bytes: Uint8Array, start: number, postings: Postings): number {
  let end = start
  let previousSlot = 0
  for (let i = 0; i < postings.count; i++) {
    const slot = postings.slots[i]!
    const frequency = postings.frequencies[i]!
    let rest = (slot - previousSlot) * 2 + (frequency > 1 ? 1 : 0)
    for (; rest > 0x7f; rest >>>= 7) bytes[end++] = (rest & 0x7f) | 0x80
    bytes[end++] = rest
    if (frequency > 1) bytes[end++] = frequency
    previousSlot = slot
  }
  return end
}

/** Reads the list written between `start` and `end` into `postings`, over what was there. */
export function readPostings(bytes: Uint8Array, start: number, end: number, postings: Postings) {
  // A posting takes a byte or more, so this is room enough.
  postings.slots = ensureCapacity(postings.slots, end - start)
  postings.frequencies = ensureCapacity(postings.frequencies, end - start)
  const { slots, frequencies } = postings
  let count = 0
  let slot = 0
  for (let at = start; at < end;) {
    let digit = bytes[at++]!
    let number = digit & 0x7f
    for (let shift = 7; digit > 0x7f; shift += 7) {
      digit = bytes[at++]!
      number |= (digit & 0x7f) << shift
    }
    slot += number >>> 1
    slots[count] = slot
    frequencies[count] = number & 1 ? bytes[at++]! : 1
    count++
  }
  postings.count = count
}
