import { LRUCache } from 'lru-cache'

export type LruCache<Value extends {}> = LRUCache<string, Value>

/**
 * An LRU cache that takes memory for the entries it has. With the library's `max` it takes that of a full one from
 * the start: 250 KB for 10,000.
 */
export const createLruCache = <Value extends {}>(entriesMax: number, ttlMs = 0): LruCache<Value> =>
  new LRUCache({ maxSize: entriesMax, sizeCalculation: () => 1, ttl: ttlMs })
