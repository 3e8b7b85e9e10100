import { LRUCache } from 'lru-cache'
import type { KeyRow } from '#shared/access/key-row.postgres.ts'

/** About 1 KB each. */
const keysMax = 10_000
const keptMs = 60_000
/** A revoked key stops working in every process within a second. */
const freshMs = 1_000

type VerifiedKey = { row: KeyRow; readAt: number }

/** The rows of keys that this process has found in the last minute. */
export class VerifiedKeys {
  readonly #keys = new LRUCache<string, VerifiedKey>({ max: keysMax, ttl: keptMs })
  /** Rows that were read earlier are not fresh any more. */
  #changedAt = -Infinity

  /**
   * @param row undefined for a key that is unknown, revoked or expired.
   * @param readAt when the read began, by `performance.now()`
   */
  note(hash: Buffer, row: KeyRow | undefined, readAt: number): void {
    if (row) this.#keys.set(nameOf(hash), { row, readAt })
    else this.#keys.delete(nameOf(hash))
  }

  /** A row of the last minute, for requests while Postgres is away. */
  find(hash: Buffer): KeyRow | undefined {
    return this.#keys.get(nameOf(hash))?.row
  }

  /** A row of the last second, for requests that need no memory. */
  findFresh(hash: Buffer): KeyRow | undefined {
    const key = this.#keys.get(nameOf(hash))
    if (!key || key.readAt <= this.#changedAt) return undefined
    return performance.now() - key.readAt < freshMs ? key.row : undefined
  }

  /** Keys may have changed: none is fresh until it is read again. */
  noteChange(): void {
    this.#changedAt = performance.now()
  }
}

const nameOf = (hash: Buffer): string => hash.toString('base64url')
