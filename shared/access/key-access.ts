import { createLruCache, type LruCache } from '#shared/core/lru-cache.ts'
import {
  findKeys,
  findUserKeys,
  type AccountUser,
  type KeyRow,
  type UserKeyRow,
} from '#shared/access/key-row.postgres.ts'
import { recordKeyUse } from '#shared/access/member-keys.postgres.ts'
import { Budgets } from '#shared/access/budgets.ts'
import { openProviderKey } from '#shared/access/provider-key.ts'
import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Log } from '#shared/core/log.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

export type KeyAccess = {
  /** Looks a Memory Key up by its hash; requests that arrive together share a read. */
  findKey: (hash: Buffer) => Promise<KeyRow | undefined>
  /** Looks a user of an account up by the product's id; requests that arrive together share a read. */
  findUserKey: (user: AccountUser) => Promise<UserKeyRow | undefined>
  /** Keys found in the last minute: they are known while Postgres is out of reach. */
  verifiedKeys: RecentReads<KeyRow>
  providerKeys: RecentProviderKeys
  lastUsed: LastUseTracker
  budgets: Budgets
}

type KeyStores = { postgres: Postgres; seal: Seal }

/** Opens what looks keys up and counts their use. */
export function createKeyAccess({ postgres, seal }: KeyStores, log: Log): KeyAccess {
  const verifiedKeys = new RecentReads<KeyRow>(60_000)
  const lastUsed = new LastUseTracker(postgres, log)
  const findKey = batchLoader(
    async (hashes: readonly Buffer[]) => {
      const readAt = performance.now()
      const rows = await findKeys(postgres.query, hashes)
      rows.forEach((row, n) => verifiedKeys.note(hashes[n]!, row, readAt))
      // The listing of an account's own keys takes their last use from the bills.
      rows.forEach((row, n) => row && row.kind !== 'vault' && lastUsed.touch(hashes[n]!))
      return rows
    },
    { concurrency: 2, batchMax: 200 },
  )
  const findUserKey = batchLoader((users: AccountUser[]) => findUserKeys(postgres.query, users), {
    concurrency: 2,
    batchMax: 200,
  })
  const providerKeys = new RecentProviderKeys({ postgres, seal })
  const budgets = new Budgets(postgres.query, log)
  return { findKey, findUserKey, verifiedKeys, providerKeys, lastUsed, budgets }
}

/** About 1 KB each. */
const readsMax = 10_000
/** A key that is revoked, replaced or deleted stops working in every process within a second. */
const freshMs = 1_000

/** Rows that this process has read lately. */
class RecentReads<Value extends object | string> {
  readonly #reads: LruCache<{ value: Value; readAt: number }>
  #changedAt = -Infinity

  constructor(keptMs: number) {
    this.#reads = createLruCache(readsMax, keptMs)
  }

  /**
   * @param value undefined where nothing was found
   * @param readAt when the read began, by `performance.now()`
   */
  note(name: Buffer | string, value: Value | undefined, readAt: number): void {
    if (value === undefined) this.#reads.delete(nameOf(name))
    else this.#reads.set(nameOf(name), { value, readAt })
  }

  /** A value of the last `keptMs`. */
  find(name: Buffer | string): Value | undefined {
    return this.#reads.get(nameOf(name))?.value
  }

  /** A value of the last second that was read after the last change. */
  findFresh(name: Buffer | string): Value | undefined {
    const read = this.#reads.get(nameOf(name))
    if (!read || read.readAt <= this.#changedAt) return undefined
    return performance.now() - read.readAt < freshMs ? read.value : undefined
  }

  /** Rows may have changed: none is fresh until it is read again. */
  noteChange(): void {
    this.#changedAt = performance.now()
  }
}

const nameOf = (name: Buffer | string): string =>
  typeof name === 'string' ? name : name.toString('base64url')

/** The accounts' own provider keys; each is read at most once a second. */
class RecentProviderKeys extends RecentReads<string> {
  readonly #stores: KeyStores

  constructor(stores: KeyStores) {
    super(freshMs)
    this.#stores = stores
  }

  /** The account's key for one provider, or undefined when it has none. */
  async open(account: string, provider: string): Promise<string | undefined> {
    const name = `${account} ${provider}`
    const known = this.findFresh(name)
    if (known !== undefined) return known
    const readAt = performance.now()
    const key = await openProviderKey(this.#stores, account, provider)
    // A missing key is looked up each time, so that it counts as soon as it is stored.
    this.note(name, key, readAt)
    return key
  }
}

/** Delay of a write. */
const writeDelayMs = 5_000

/** Collects uses of keys: a busy key costs one write a minute. */
class LastUseTracker {
  readonly #postgres: Postgres
  readonly #log: Log
  #pendingUses = new Map<string, Buffer>()
  #timer: NodeJS.Timeout | undefined

  constructor(postgres: Postgres, log: Log) {
    this.#postgres = postgres
    this.#log = log
  }

  /** Records in memory that a key was used now. */
  touch(hash: Buffer): void {
    this.#pendingUses.set(nameOf(hash), hash)
    this.#timer ??= setTimeout(() => void this.flush(), writeDelayMs).unref()
  }

  /** Writes the recorded uses. A use that cannot be written is lost until the key's next use. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const hashes = [...this.#pendingUses.values()]
    this.#pendingUses.clear()
    if (hashes.length === 0) return
    await recordKeyUse(this.#postgres.query, hashes).catch((error: unknown) =>
      this.#log.warn({ err: error, keys: hashes.length }, 'keys.use-unwritten'),
    )
  }
}
