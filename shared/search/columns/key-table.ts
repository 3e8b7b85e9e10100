import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'

const bucketsMin = 32
/** Share of full buckets above which linear probing takes long runs. */
const loadFactorMax = 0.75

/**
 * A hash table (open addressing, linear probing) from keys of a few 32-bit words to entry numbers, in the order they were
 * added. It lives outside the JavaScript heap: 20 to 30 bytes an entry, where a Map of strings takes 90.
 */
export class KeyTable {
  readonly #width: number
  #keys = new Uint32Array(0)
  #count = 0
  #liveCount = 0
  /** Entry + 1 in or after the bucket of its hash, 0 where empty; the length is a power of two. */
  #buckets = new Uint32Array(bucketsMin)

  /** @param width 32-bit words of a key. */
  constructor(width: number) {
    this.#width = width
  }

  /** Entries ever added; the next one gets this number. */
  get count(): number {
    return this.#count
  }

  /** Entries that `find` returns. */
  get liveCount(): number {
    return this.#liveCount
  }

  get bytes(): number {
    return this.#keys.byteLength + this.#buckets.byteLength
  }

  /** Returns the entry of a key, or -1. */
  find(key: Uint32Array): number {
    const buckets = this.#buckets
    const mask = buckets.length - 1
    let bucket = this.#homeBucket(key, 0)
    while (buckets[bucket] !== 0) {
      if (this.#hasKey(buckets[bucket]! - 1, key)) return buckets[bucket]! - 1
      bucket = (bucket + 1) & mask
    }
    return -1
  }

  /** Adds a key that is not in the table, and returns its entry. */
  add(key: Uint32Array): number {
    const entry = this.#count
    this.#keys = ensureCapacity(this.#keys, (entry + 1) * this.#width)
    this.#keys.set(key, entry * this.#width)
    if (this.#liveCount + 1 > this.#buckets.length * loadFactorMax) this.#rehash()
    this.#insertEntry(entry)
    this.#liveCount++
    return this.#count++
  }

  /** Hides an entry from `find`; its number and key stay. */
  drop(entry: number) {
    const buckets = this.#buckets
    const mask = buckets.length - 1
    let hole = this.#homeBucket(this.#keys, entry * this.#width)
    while (buckets[hole] !== entry + 1) hole = (hole + 1) & mask
    // Backward-shift deletion: entries that were displaced past the hole move up into it.
    for (let bucket = (hole + 1) & mask; buckets[bucket] !== 0; bucket = (bucket + 1) & mask) {
      const home = this.#homeBucket(this.#keys, (buckets[bucket]! - 1) * this.#width)
      if (((bucket - home) & mask) < ((bucket - hole) & mask)) continue
      buckets[hole] = buckets[bucket]!
      hole = bucket
    }
    buckets[hole] = 0
    this.#liveCount--
  }

  /** Writes the key of an entry into `key`. */
  copyKey(entry: number, key: Uint32Array) {
    const width = this.#width
    for (let i = 0; i < width; i++) key[i] = this.#keys[entry * width + i]!
  }

  /** Returns a table of these entries only, numbered from 0 in the order given. */
  pick(entries: Uint32Array): KeyTable {
    const width = this.#width
    const table = new KeyTable(width)
    for (const entry of entries) table.add(this.#keys.subarray(entry * width, (entry + 1) * width))
    table.trim()
    return table
  }

  /** What `restore` takes. */
  save() {
    const keys = this.#keys.subarray(0, this.#count * this.#width)
    return { keys, count: this.#count, liveCount: this.#liveCount, buckets: this.#buckets }
  }

  restore(saved: ReturnType<KeyTable['save']>): this {
    this.#keys = saved.keys
    this.#count = saved.count
    this.#liveCount = saved.liveCount
    this.#buckets = saved.buckets
    return this
  }

  /** Frees unused capacity. */
  trim() {
    this.#keys = trimToLength(this.#keys, this.#count * this.#width)
  }

  #homeBucket(key: Uint32Array, offset: number): number {
    const width = this.#width
    let hash = 0
    for (let i = 0; i < width; i++) {
      hash = Math.imul(hash ^ key[offset + i]!, 0x9e3779b1)
      hash ^= hash >>> 15
    }
    return hash & (this.#buckets.length - 1)
  }

  #hasKey(entry: number, key: Uint32Array): boolean {
    const width = this.#width
    const keys = this.#keys
    const offset = entry * width
    for (let i = 0; i < width; i++) if (keys[offset + i] !== key[i]) return false
    return true
  }

  #insertEntry(entry: number) {
    const buckets = this.#buckets
    let bucket = this.#homeBucket(this.#keys, entry * this.#width)
    while (buckets[bucket] !== 0) bucket = (bucket + 1) & (buckets.length - 1)
    buckets[bucket] = entry + 1
  }

  #rehash() {
    const entries = this.#buckets.filter(bucket => bucket !== 0)
    this.#buckets = new Uint32Array(this.#buckets.length * 2)
    for (const entry of entries) this.#insertEntry(entry - 1)
  }
}
