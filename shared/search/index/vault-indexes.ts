import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { visibilityKey, type Visibility } from '#shared/domain/visibility.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

/** One vector space of a vault, or of a session of it (`null`: the core vault). */
export type IndexRef = {
  scope: VaultScope
  session: string | null
  space: string
  dimension: number
  /**
   * Of a shared vault: what the caller may see. Callers of equal visibility share an index, which
   * contains only what they may see, so hidden memories affect neither results nor cost.
   */
  audience?: Visibility
}

/** Reads the content of indexes from the stores. */
export type IndexSource = {
  /**
   * Passes all memories of the space in batches, fastest in order of time. They are at least as new
   * as the revision of the scope.
   */
  load(ref: IndexRef, onBatch: (rows: EmbeddedMemory[]) => void): Promise<void>
  /**
   * What changed after revision `since`: ids to remove first, then rows to put. Null when the
   * changes are unknown and everything has to be loaded.
   */
  changes(ref: IndexRef, since: number): Promise<{ put: EmbeddedMemory[]; remove: string[] } | null>
  /** Estimated size of the index in bytes, before anything is read. */
  estimateBytes(ref: IndexRef): Promise<number>
}

type VaultIndexStats = { hits: number; loads: number; refreshes: number; evictions: number }

export type VaultIndexesOptions = {
  budgetBytes: number
  createIndex: (options: { dimension: number }) => VaultIndex
  now?: () => number
}

type IndexVersion = { epoch: number; revision: number }

/** An index, or that it is too large for the budget. */
type CacheEntry = IndexVersion & {
  index: VaultIndex | 'too-large'
  bytes: number
  cachedAt: number
}

/** A load or refresh in progress, and the version it leads to. */
type PendingLoad = IndexVersion & { outcome: Promise<VaultIndex | 'too-large' | 'superseded'> }

/** Vaults seldom shrink, and estimating a large one is slow: `too-large` is cached for this time. */
const tooLargeTtlMs = 600_000
/** Size that a `too-large` entry counts as, so that these entries are evicted too. */
const tooLargeEntryBytes = 1_000

const budgetExceeded = new Error('An index exceeded the budget while it was loaded')

/** The vault indexes cached by this process: an LRU cache with a budget in bytes. */
export class VaultIndexes {
  readonly budget: number
  readonly #source: IndexSource
  readonly #createIndex: VaultIndexesOptions['createIndex']
  readonly #now: () => number
  /** Least recently used first. */
  readonly #entries = new Map<string, CacheEntry>()
  readonly #pending = new Map<string, PendingLoad>()
  readonly #stats: VaultIndexStats = { hits: 0, loads: 0, refreshes: 0, evictions: 0 }
  #cachedBytes = 0
  #loadingBytes = 0

  constructor(source: IndexSource, options: VaultIndexesOptions) {
    this.budget = options.budgetBytes
    this.#source = source
    this.#createIndex = options.createIndex
    this.#now = options.now ?? Date.now
  }

  /** Bytes of the cached indexes, plus the estimates of those being loaded. */
  get bytes(): number {
    return this.#cachedBytes + this.#loadingBytes
  }

  /** Number of cached indexes. */
  get count(): number {
    return [...this.#entries.values()].filter(({ index }) => index !== 'too-large').length
  }

  stats(): VaultIndexStats {
    return { ...this.#stats }
  }

  /**
   * The index of a space, at least as new as the revision of the scope and never of an earlier epoch
   * than the cached one: from the cache, refreshed with what changed, or loaded. Concurrent callers
   * share one load. `too-large` when the budget has no room: search the database instead.
   *
   * A refresh changes an index that other callers may be using, but without an `await`: do not
   * await between two accesses that belong together. Rejects with the errors of the source; the
   * next call tries again.
   */
  async get(ref: IndexRef): Promise<VaultIndex | 'too-large'> {
    const key = cacheKey(ref)
    for (;;) {
      const index = this.#lookUp(key, ref)
      if (index) return index

      const current = this.#pending.get(key)
      if (current && !covers(current, ref.scope) && current.epoch === ref.scope.epoch) {
        // An older revision is being loaded: refresh from its result. Its failure is not ours.
        await current.outcome.catch(() => 'superseded')
        continue
      }
      const isShared = current && covers(current, ref.scope)
      const outcome = await (isShared ? current : this.#start(key, ref)).outcome
      if (outcome !== 'superseded') return outcome
    }
  }

  /** Drops all indexes of a vault, loads in progress included. */
  forget(vault: string) {
    const belongsToVault = (key: string) => key.startsWith(`${vault}\n`)
    for (const key of [...this.#pending.keys()].filter(belongsToVault)) this.#pending.delete(key)
    for (const key of [...this.#entries.keys()].filter(belongsToVault)) this.#drop(key)
  }

  /** The cached index if it is new enough; makes it the most recently used. */
  #lookUp(key: string, ref: IndexRef): VaultIndex | 'too-large' | undefined {
    const entry = this.#entries.get(key)
    if (!entry || !(this.#isKnownTooLarge(entry, ref) || covers(entry, ref.scope))) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    this.#stats.hits++
    return entry.index
  }

  #isKnownTooLarge({ index, epoch, cachedAt }: CacheEntry, { scope }: IndexRef): boolean {
    const isFresh = this.#now() - cachedAt < tooLargeTtlMs
    return index === 'too-large' && epoch >= scope.epoch && isFresh
  }

  #start(key: string, ref: IndexRef): PendingLoad {
    const { epoch, revision } = ref.scope
    const load: PendingLoad = { epoch, revision, outcome: Promise.resolve('superseded') }
    const isCurrent = () => this.#pending.get(key) === load
    // Starts in a microtask, after `pending` has the load: `isCurrent` depends on it.
    load.outcome = Promise.resolve()
      .then(() => this.#refreshOrLoad(key, ref, isCurrent))
      .finally(() => {
        if (isCurrent()) this.#pending.delete(key)
      })
    this.#pending.set(key, load)
    return load
  }

  async #refreshOrLoad(key: string, ref: IndexRef, isCurrent: () => boolean) {
    const entry = this.#entries.get(key)
    if (entry && entry.index !== 'too-large' && entry.epoch === ref.scope.epoch) {
      const changes = await this.#source.changes(ref, entry.revision)
      if (!isCurrent()) return 'superseded'
      if (changes) {
        this.#drop(key)
        entry.index.remove(changes.remove)
        entry.index.put(changes.put)
        this.#stats.refreshes++
        return this.#store(key, ref, entry.index)
      }
    }
    this.#drop(key)
    const index = await this.#loadIndex(ref)
    if (!isCurrent()) return 'superseded'
    return index === 'no-room' ? 'too-large' : this.#store(key, ref, index)
  }

  async #loadIndex(ref: IndexRef): Promise<VaultIndex | 'too-large' | 'no-room'> {
    const size = await this.#source.estimateBytes(ref)
    if (size > this.budget) return 'too-large'
    // Concurrent loads use up the budget for now: not cached as `too-large`.
    if (this.#loadingBytes + size > this.budget) return 'no-room'

    this.#loadingBytes += size
    this.#evictToBudget()
    try {
      const index = this.#createIndex({ dimension: ref.dimension })
      await this.#source.load(ref, rows => {
        index.put(rows)
        if (index.bytes > this.budget) throw budgetExceeded
      })
      index.trim()
      this.#stats.loads++
      return index
    } catch (error) {
      if (error !== budgetExceeded) throw error
      return 'too-large'
    } finally {
      this.#loadingBytes -= size
    }
  }

  #store(key: string, { scope }: IndexRef, loaded: VaultIndex | 'too-large') {
    const fits = loaded !== 'too-large' && loaded.bytes <= this.budget
    const index = fits ? loaded : 'too-large'
    const bytes = fits ? loaded.bytes : tooLargeEntryBytes
    const { epoch, revision } = scope
    this.#entries.set(key, { index, bytes, epoch, revision, cachedAt: this.#now() })
    this.#cachedBytes += bytes
    this.#evictToBudget()
    return index
  }

  #drop(key: string): boolean {
    this.#cachedBytes -= this.#entries.get(key)?.bytes ?? 0
    return this.#entries.delete(key)
  }

  /** Evicts the least recently used; entries being refreshed stay, as a caller waits for them. */
  #evictToBudget() {
    for (const key of this.#entries.keys()) {
      if (this.bytes <= this.budget) return
      if (!this.#pending.has(key) && this.#drop(key)) this.#stats.evictions++
    }
  }
}

function cacheKey({ scope, session, space, audience }: IndexRef): string {
  const part = session === null ? 'core' : `session ${session}`
  const visibility = audience && !audience.wildcard ? [visibilityKey(audience)] : []
  return [scope.vault, space, ...visibility, part].join('\n')
}

function covers(have: IndexVersion, wanted: IndexVersion): boolean {
  return (
    have.epoch > wanted.epoch || (have.epoch === wanted.epoch && have.revision >= wanted.revision)
  )
}
