import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'

/**
 * Finds entries by a key of a few 32-bit words. Entries are numbered in the order
 * they were added. Held outside the JavaScript heap: 20 to 30 bytes an entry where
 * a Map of strings takes 90, and nothing for the garbage collector to walk.
 */
export type KeyTable = {
  /** Entries ever added; the next one gets this number. */
  readonly count: number
  readonly bytes: number
  /** The entry of a key, or -1. */
  find(key: Uint32Array): number
  /** Adds a key that is not in the table, and returns its entry. */
  add(key: Uint32Array): number
  /** An entry is no longer found; its number and key stay. */
  drop(entry: number): void
  /** Writes the key of an entry. */
  copyKey(entry: number, key: Uint32Array): void
  /** A table of these entries alone, numbered from 0 in the order given. */
  pick(entries: Uint32Array): KeyTable
  trim(): void
}

const bucketsMin = 32
/** Beyond three quarters full, probes grow long. */
const loadFactorMax = 0.75

/** @param width Words of a key. */
export function createKeyTable(width: number): KeyTable {
  let keys = new Uint32Array(0)
  let count = 0
  let liveCount = 0
  /** Entry + 1 at a place near its hash, 0 where nothing is; a power of two long. */
  let buckets = new Uint32Array(bucketsMin)

  function homeBucket(key: Uint32Array, offset: number): number {
    let hash = 0
    for (let i = 0; i < width; i++) {
      hash = Math.imul(hash ^ key[offset + i]!, 0x9e3779b1)
      hash ^= hash >>> 15
    }
    return hash & (buckets.length - 1)
  }

  function holdsKey(bucket: number, key: Uint32Array): boolean {
    const offset = (buckets[bucket]! - 1) * width
    for (let i = 0; i < width; i++) if (keys[offset + i] !== key[i]) return false
    return true
  }

  function insertEntry(entry: number) {
    let bucket = homeBucket(keys, entry * width)
    while (buckets[bucket] !== 0) bucket = (bucket + 1) & (buckets.length - 1)
    buckets[bucket] = entry + 1
  }

  function rehash() {
    const entries = buckets.filter(bucket => bucket !== 0)
    buckets = new Uint32Array(buckets.length * 2)
    for (const entry of entries) insertEntry(entry - 1)
  }

  return {
    get count() {
      return count
    },
    get bytes() {
      return keys.byteLength + buckets.byteLength
    },

    find(key) {
      let bucket = homeBucket(key, 0)
      while (buckets[bucket] !== 0) {
        if (holdsKey(bucket, key)) return buckets[bucket]! - 1
        bucket = (bucket + 1) & (buckets.length - 1)
      }
      return -1
    },

    add(key) {
      keys = ensureCapacity(keys, (count + 1) * width)
      keys.set(key, count * width)
      if (liveCount + 1 > buckets.length * loadFactorMax) rehash()
      insertEntry(count)
      liveCount++
      return count++
    },

    drop(entry) {
      const mask = buckets.length - 1
      let hole = homeBucket(keys, entry * width)
      while (buckets[hole] !== entry + 1) hole = (hole + 1) & mask
      // Whoever was pushed past the hole moves up, so that every probe still ends where it should.
      for (let bucket = (hole + 1) & mask; buckets[bucket] !== 0; bucket = (bucket + 1) & mask) {
        const home = homeBucket(keys, (buckets[bucket]! - 1) * width)
        if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue
        buckets[hole] = buckets[bucket]!
        hole = bucket
      }
      buckets[hole] = 0
      liveCount--
    },

    copyKey(entry, key) {
      for (let i = 0; i < width; i++) key[i] = keys[entry * width + i]!
    },

    pick(entries) {
      const table = createKeyTable(width)
      for (const entry of entries) table.add(keys.subarray(entry * width, (entry + 1) * width))
      table.trim()
      return table
    },

    trim() {
      keys = trimToLength(keys, count * width)
    },
  }
}
