import { ensureCapacity } from '#shared/search/columns/column.ts'

/** The slots that contain a term, ascending, and its frequency in each. */
export type Postings = { slots: Uint32Array; frequencies: Uint8Array; count: number }

/** Largest stored frequency of a term in a text; BM25 is saturated long before. */
export const frequencyMax = 255

/** Most bytes of one packed posting. */
export const postingBytesMax = 6

export function createPostings(): Postings {
  return { slots: new Uint32Array(0), frequencies: new Uint8Array(0), count: 0 }
}

/** Appends a posting. */
export function pushPosting(postings: Postings, slot: number, frequency: number) {
  postings.slots = ensureCapacity(postings.slots, postings.count + 1)
  postings.frequencies = ensureCapacity(postings.frequencies, postings.count + 1)
  postings.slots[postings.count] = slot
  postings.frequencies[postings.count] = frequency
  postings.count++
}

/**
 * Packs a list of ascending slots into `bytes` from `start` on, and returns the end. A posting is
 * the delta to the slot before as a varint (7 bits a byte), whose lowest bit is set when a byte with
 * a frequency above 1 follows. About 1.6 bytes a posting.
 */
export function writePostings(bytes: Uint8Array, start: number, postings: Postings): number {
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
export function readPostings(bytes: Uint8Array, start: number, end: number, postings: Postings) {
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
