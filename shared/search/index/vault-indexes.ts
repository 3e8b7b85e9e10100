import { visibilityKey } from '#shared/domain/visibility.ts'
import {
  type IndexRef,
  type IndexSource,
  IndexLoader,
  putInSlices,
  rowCount,
  type LoadProgress,
} from '#shared/search/index/load-index.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

export type { IndexRef, IndexSource } from '#shared/search/index/load-index.ts'

type VaultIndexStats = { hits: number; loads: number; refreshes: number; evictions: number }

export type VaultIndexesOptions = {
  budgetBytes: number
  createIndex: (options: { dimension: number; packLater: boolean }) => VaultIndex
  now?: () => number
  /** After so long a loaded index is saved for other processes: the request that waited for it has its answer. */
  saveAfterMs?: number
}

type IndexVersion = { epoch: number; revision: number }

type CacheEntry = IndexVersion & {
  ref: IndexRef
  index: VaultIndex | 'too-large'
  bytes: number
  cachedAt: number
  /** Rows that have changed since it was saved, or since what it was restored from. */
  unsaved: number
}

/** A load or refresh in progress, with the version that it results in. */
type PendingLoad = IndexVersion & {
  outcome: Promise<VaultIndex | 'too-large' | 'superseded'>
  /** True as soon as it is known that many rows have to be read. */
  isLong: Promise<boolean>
}

/** Time for which `too-large` is cached: vaults seldom shrink, and estimating a large one is slow. */
const tooLargeTtlMs = 600_000
/** A smaller index is read as fast from its documents; a larger one would hold the event loop while it is packed. */
const savedRowsMin = 100
const savedBytesMax = 48 * 1024 * 1024
/** Share of changed rows that makes an index worth saving again. */
const unsavedShare = 1 / 8

/** Size of a `too-large` entry in the budget, so that such entries are evicted too. */
const tooLargeEntryBytes = 1_000

/** An LRU cache of the vault indexes of this process, with a budget in bytes. */
export class VaultIndexes {
  readonly budget: number
  readonly #source: IndexSource
  readonly #loader: IndexLoader
  readonly #now: () => number
  /** Least recently used first. */
  readonly #entries = new Map<string, CacheEntry>()
  readonly #pending = new Map<string, PendingLoad>()
  readonly #stats: VaultIndexStats = { hits: 0, loads: 0, refreshes: 0, evictions: 0 }
  readonly #saveAfterMs: number
  #cachedBytes = 0
  #isSaving = false

  constructor(source: IndexSource, options: VaultIndexesOptions) {
    this.budget = options.budgetBytes
    this.#source = source
    this.#loader = new IndexLoader(source, {
      budget: this.budget,
      createIndex: options.createIndex,
      onReserve: () => this.#evictToBudget(),
    })
    this.#now = options.now ?? Date.now
    this.#saveAfterMs = options.saveAfterMs ?? 1_000
  }

  /** Bytes of the cached indexes, plus the estimates of those being loaded. */
  get bytes(): number {
    return this.#cachedBytes + this.#loader.bytes
  }

  /** Number of cached indexes. */
  get count(): number {
    return [...this.#entries.values()].filter(({ index }) => index !== 'too-large').length
  }

  stats(): VaultIndexStats {
    return { ...this.#stats }
  }

  /**
   * Returns the index of a space from the cache, refreshed with what changed, or loaded. It is at least as new as the
   * revision of the scope and never of an earlier epoch than the cached one. Concurrent callers share one load.
   *
   * A refresh changes an index that other callers may be using: do not await between two accesses that belong together,
   * or compare the `version` of its tiers (`ranking/rank.ts`). Rejects with the errors of the source; the next call
   * tries again.
   *
   * @returns `too-large` when the budget has no room: search the database instead
   */
  async get(ref: IndexRef): Promise<VaultIndex | 'too-large'> {
    const key = cacheKey(ref)
    for (;;) {
      const index = this.#lookUp(key, ref)
      if (index) return index

      const current = this.#pending.get(key)
      if (current && !covers(current, ref.scope) && current.epoch === ref.scope.epoch) {
        // An older revision is being loaded: refresh from its result, or load where it fails.
        await current.outcome.catch(() => 'superseded')
        continue
      }
      const isShared = current && covers(current, ref.scope)
      const outcome = await (isShared ? current : this.#start(key, ref)).outcome
      if (outcome !== 'superseded') return outcome
    }
  }

  get loading(): LoadProgress {
    return this.#loader.progress
  }

  /** Does the same as `get`, but returns `loading` when a whole vault has to be read first; the load goes on. */
  async getUnlessLong(ref: IndexRef): Promise<VaultIndex | 'too-large' | 'loading'> {
    const outcome = this.get(ref)
    // A caller that does not wait does not see a failed load; the next one loads again.
    outcome.catch(() => {})
    const isLong = this.#pending.get(cacheKey(ref))?.isLong
    if (!isLong) return outcome
    const early = isLong.then<VaultIndex | 'too-large' | 'loading'>(long =>
      long ? 'loading' : outcome,
    )
    return Promise.race([outcome, early])
  }

  /** Drops all indexes of a vault, loads in progress included. */
  forget(vault: string) {
    const belongsToVault = (key: string) => key.startsWith(`${vault}\n`)
    for (const key of [...this.#pending.keys()].filter(belongsToVault)) this.#pending.delete(key)
    for (const key of [...this.#entries.keys()].filter(belongsToVault)) this.#drop(key)
  }

  /** Returns the cached index if it is new enough, and makes it the most recently used. */
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
    const size = Promise.withResolvers<boolean>()
    const isLong = size.promise
    const load: PendingLoad = { epoch, revision, outcome: Promise.resolve('superseded'), isLong }
    const isCurrent = () => this.#pending.get(key) === load
    // Starts in a microtask, after `pending` has the load: `isCurrent` depends on it.
    load.outcome = Promise.resolve()
      .then(() => this.#refreshOrLoad(key, ref, { isCurrent, onSize: size.resolve }))
      .finally(() => {
        size.resolve(false)
        if (isCurrent()) this.#pending.delete(key)
      })
    this.#pending.set(key, load)
    return load
  }

  async #refreshOrLoad(
    key: string,
    ref: IndexRef,
    observer: {
      /** False once the load was dropped. */
      isCurrent: () => boolean
      /** Called when the number of rows is known: whether there are many. */
      onSize: (isLong: boolean) => void
    },
  ) {
    const { isCurrent, onSize } = observer
    const entry = this.#entries.get(key)
    if (entry && entry.index !== 'too-large' && entry.epoch === ref.scope.epoch) {
      const changes = await this.#source.changes(ref, entry.revision)
      if (!isCurrent()) return 'superseded'
      if (changes) {
        // Hidden from callers until it is stored again.
        this.#drop(key)
        entry.index.remove(changes.remove)
        await putInSlices(entry.index, changes.put)
        if (!isCurrent()) return 'superseded'
        this.#stats.refreshes++
        const unsaved = entry.unsaved + changes.put.length + changes.remove.length
        return this.#store(key, ref, { index: entry.index, unsaved })
      }
    }
    this.#drop(key)
    const loaded = await this.#loader.load(ref, onSize)
    if (!isCurrent()) return 'superseded'
    if (loaded === 'no-room') return 'too-large'
    if (loaded === 'too-large') return this.#store(key, ref, { index: loaded, unsaved: 0 })
    this.#stats.loads++
    return this.#store(key, ref, loaded)
  }

  #store(
    key: string,
    ref: IndexRef,
    { index: loaded, unsaved }: Pick<CacheEntry, 'index' | 'unsaved'>,
  ) {
    const fits = loaded !== 'too-large' && loaded.bytes <= this.budget
    const index = fits ? loaded : 'too-large'
    const bytes = fits ? loaded.bytes : tooLargeEntryBytes
    const { epoch, revision } = ref.scope
    this.#entries.set(key, { ref, index, bytes, epoch, revision, cachedAt: this.#now(), unsaved })
    this.#cachedBytes += bytes
    this.#evictToBudget()
    if (this.#isWorthSaving(key)) this.#saveLater(key)
    return index
  }

  #isWorthSaving(key: string): boolean {
    const entry = this.#entries.get(key)
    if (!this.#source.save || !entry || entry.index === 'too-large') return false
    if (entry.unsaved < savedRowsMin || entry.bytes > savedBytesMax) return false
    return entry.unsaved >= rowCount(entry.index) * unsavedShare
  }

  #saveLater(key: string) {
    setTimeout(() => {
      if (this.#isSaving) this.#saveLater(key)
      else void this.#save(key)
    }, this.#saveAfterMs).unref()
  }

  /** Saves an index where that is worth it and no other is being saved; it is packed before the first await. */
  async #save(key: string): Promise<void> {
    if (this.#isSaving || !this.#isWorthSaving(key)) return
    this.#isSaving = true
    const entry = this.#entries.get(key)!
    const { ref, index, epoch, revision } = entry
    entry.unsaved = 0
    const scope = { ...ref.scope, epoch, revision }
    const saved = index as VaultIndex
    const what = { rows: rowCount(saved), bytes: saved.save() }
    await this.#source.save!({ ...ref, scope }, what).finally(() => (this.#isSaving = false))
  }

  #drop(key: string): boolean {
    this.#cachedBytes -= this.#entries.get(key)?.bytes ?? 0
    return this.#entries.delete(key)
  }

  /**
   * Evicts the least recently used entries, except those that are being refreshed. One that is not saved yet is saved
   * now: where vaults take turns in a small cache none stays until its time.
   */
  #evictToBudget() {
    for (const key of this.#entries.keys()) {
      if (this.bytes <= this.budget) return
      if (this.#pending.has(key)) continue
      void this.#save(key)
      if (this.#drop(key)) this.#stats.evictions++
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
