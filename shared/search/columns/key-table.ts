import { grown, trimmed } from '#shared/search/columns/column.ts'

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
  read(entry: number, key: Uint32Array): void
  /** A table of these entries alone, numbered from 0 in the order given. */
  pick(entries: Uint32Array): KeyTable
  trim(): void
}

const placesMin = 32
/** Beyond three quarters full, probes grow long. */
const fullness = 0.75

/** @param width Words of a key. */
export function createKeyTable(width: number): KeyTable {
  let keys = new Uint32Array(0)
  let count = 0
  let found = 0
  /** Entry + 1 at a place near its hash, 0 where nothing is; a power of two long. */
  let places = new Uint32Array(placesMin)

  function homeOf(key: Uint32Array, offset: number): number {
    let hash = 0
    for (let i = 0; i < width; i++) {
      hash = Math.imul(hash ^ key[offset + i]!, 0x9e3779b1)
      hash ^= hash >>> 15
    }
    return hash & (places.length - 1)
  }

  function isAt(place: number, key: Uint32Array): boolean {
    const offset = (places[place]! - 1) * width
    for (let i = 0; i < width; i++) if (keys[offset + i] !== key[i]) return false
    return true
  }

  function occupy(entry: number) {
    let place = homeOf(keys, entry * width)
    while (places[place] !== 0) place = (place + 1) & (places.length - 1)
    places[place] = entry + 1
  }

  function widen() {
    const entries = places.filter(place => place !== 0)
    places = new Uint32Array(places.length * 2)
    for (const entry of entries) occupy(entry - 1)
  }

  return {
    get count() {
      return count
    },
    get bytes() {
      return keys.byteLength + places.byteLength
    },

    find(key) {
      let place = homeOf(key, 0)
      while (places[place] !== 0) {
        if (isAt(place, key)) return places[place]! - 1
        place = (place + 1) & (places.length - 1)
      }
      return -1
    },

    add(key) {
      keys = grown(keys, (count + 1) * width)
      keys.set(key, count * width)
      if (found + 1 > places.length * fullness) widen()
      occupy(count)
      found++
      return count++
    },

    drop(entry) {
      const mask = places.length - 1
      let hole = homeOf(keys, entry * width)
      while (places[hole] !== entry + 1) hole = (hole + 1) & mask
      // Whoever was pushed past the hole moves up, so that every probe still ends where it should.
      for (let place = (hole + 1) & mask; places[place] !== 0; place = (place + 1) & mask) {
        const home = homeOf(keys, (places[place]! - 1) * width)
        if (((place - home) & mask) < ((place - hole) & mask)) continue
        places[hole] = places[place]!
        hole = place
      }
      places[hole] = 0
      found--
    },

    read(entry, key) {
      for (let i = 0; i < width; i++) key[i] = keys[entry * width + i]!
    },

    pick(entries) {
      const table = createKeyTable(width)
      for (const entry of entries) table.add(keys.subarray(entry * width, (entry + 1) * width))
      table.trim()
      return table
    },

    trim() {
      keys = trimmed(keys, count * width)
    },
  }
}
