import { LRUCache } from 'lru-cache'
import { openProviderKey } from '#shared/access/provider-key.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

const keysMax = 10_000
/** A key that was replaced or deleted is not used by any process a second later. */
const freshMs = 1_000

type RecentKey = { key: string | undefined; readAt: number }

/** The accounts' own provider keys, read at most once a second each. */
export class RecentProviderKeys {
  readonly #stores: { postgres: Postgres; seal: Seal }
  readonly #keys = new LRUCache<string, RecentKey>({ max: keysMax, ttl: freshMs })
  #changedAt = -Infinity

  constructor(stores: { postgres: Postgres; seal: Seal }) {
    this.#stores = stores
  }

  /** The account's key for one provider, or undefined when it has none. */
  async open(account: string, provider: string): Promise<string | undefined> {
    const name = `${account} ${provider}`
    const known = this.#keys.get(name)
    const readAt = performance.now()
    if (known && known.readAt > this.#changedAt && readAt - known.readAt < freshMs) return known.key
    const key = await openProviderKey(this.#stores, account, provider)
    // A key that is missing is asked for each time: it counts as soon as it is stored.
    if (key !== undefined) this.#keys.set(name, { key, readAt })
    return key
  }

  /** Provider keys may have changed: each is read again. */
  noteChange(): void {
    this.#changedAt = performance.now()
    this.#keys.clear()
  }
}
