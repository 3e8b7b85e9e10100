import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { visibilityKey, type Visibility } from '#shared/domain/visibility.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

/** One space of vectors in a vault, or in a session of it (`null`: the core vault). */
export type IndexRef = {
  scope: VaultScope
  session: string | null
  space: string
  dimension: number
  /**
   * Of a shared vault: who looks. Those who may see the same share an image, which holds what they may
   * see and nothing else, so that what is hidden from them neither counts nor costs anything.
   */
  audience?: Visibility
}

/** Where images come from. */
export type IndexSource = {
  /**
   * Hands over every memory of the space in batches, best in order of time. What
   * is read is at least as new as the revision of the scope.
   */
  load(ref: IndexRef, onBatch: (rows: EmbeddedMemory[]) => void): Promise<void>
  /**
   * What changed after revision `since`: ids to remove, and then rows to put; or
   * null when only reading everything anew can tell.
   */
  changes(ref: IndexRef, since: number): Promise<{ put: EmbeddedMemory[]; remove: string[] } | null>
  /** Rough size in bytes, before anything is read. */
  estimateBytes(ref: IndexRef): Promise<number>
}

/** The images this process holds within a budget of bytes; the least recently asked for go. */
export type VaultIndexes = {
  /**
   * The image of a space, at least as new as the revision of the scope, and never
   * of an earlier epoch than the image held: as it is, brought up to date with what
   * changed, or loaded. Callers that ask at the same time share one load.
   * `too-large` when there is no room for it: search the database instead.
   *
   * A refresh changes an image that others may hold, but in one step without an
   * `await`: rank without awaiting between two looks at an image. Rejects with
   * whatever the source rejects with; the next caller tries again.
   */
  get(ref: IndexRef): Promise<VaultIndex | 'too-large'>
  /** Lets go of everything about a vault, loads in progress included. */
  forget(vault: string): void
  /** Bytes of the images held, and of those being loaded as measured. */
  readonly bytes: number
  readonly budget: number
  /** Number of images. */
  readonly count: number
  stats(): VaultIndexStats
}

type VaultIndexStats = { hits: number; loads: number; refreshes: number; evictions: number }

export type VaultIndexesOptions = {
  budgetBytes: number
  createIndex: (options: { dimension: number }) => VaultIndex
  now?: () => number
}

type IndexVersion = { epoch: number; revision: number }

/** An image, or the verdict that there is no room for it. */
type CacheEntry = IndexVersion & {
  index: VaultIndex | 'too-large'
  bytes: number
  cachedAt: number
}

/** A load or refresh in progress, and the version it leads to. */
type PendingLoad = IndexVersion & { outcome: Promise<VaultIndex | 'too-large' | 'superseded'> }

/** Vaults seldom shrink, and measuring a large one is slow: until then its verdict stands. */
const tooLargeTtlMs = 600_000
/** A verdict counts as this much, so that verdicts are thrown out like images. */
const tooLargeEntryBytes = 1_000

const budgetExceeded = new Error('An image grew past the budget while it was loaded')

export function createVaultIndexes(
  source: IndexSource,
  options: VaultIndexesOptions,
): VaultIndexes {
  const { budgetBytes, createIndex, now = Date.now } = options
  /** Least recently asked first. */
  const entries = new Map<string, CacheEntry>()
  const pending = new Map<string, PendingLoad>()
  const stats: VaultIndexStats = { hits: 0, loads: 0, refreshes: 0, evictions: 0 }
  let cachedBytes = 0
  let loadingBytes = 0

  /** What is held, if it will do; it is the most recently asked from now on. */
  function lookUp(key: string, ref: IndexRef): VaultIndex | 'too-large' | undefined {
    const entry = entries.get(key)
    if (!entry || !(isKnownTooLarge(entry, ref) || covers(entry, ref.scope))) return undefined
    entries.delete(key)
    entries.set(key, entry)
    stats.hits++
    return entry.index
  }

  function isKnownTooLarge({ index, epoch, cachedAt }: CacheEntry, { scope }: IndexRef): boolean {
    return index === 'too-large' && epoch >= scope.epoch && now() - cachedAt < tooLargeTtlMs
  }

  function start(key: string, ref: IndexRef): PendingLoad {
    const { epoch, revision } = ref.scope
    const pendingLoad: PendingLoad = { epoch, revision, outcome: Promise.resolve('superseded') }
    // Begins when `working` knows it: that is how it sees whether it is still wanted.
    pendingLoad.outcome = Promise.resolve()
      .then(() => refreshOrLoad(key, ref, () => pending.get(key) === pendingLoad))
      .finally(() => {
        if (pending.get(key) === pendingLoad) pending.delete(key)
      })
    pending.set(key, pendingLoad)
    return pendingLoad
  }

  async function refreshOrLoad(key: string, ref: IndexRef, isCurrent: () => boolean) {
    const entry = entries.get(key)
    if (entry && entry.index !== 'too-large' && entry.epoch === ref.scope.epoch) {
      const changes = await source.changes(ref, entry.revision)
      if (!isCurrent()) return 'superseded'
      if (changes) {
        drop(key)
        entry.index.remove(changes.remove)
        entry.index.put(changes.put)
        stats.refreshes++
        return store(key, ref, entry.index)
      }
    }
    drop(key)
    const index = await loadIndex(ref)
    if (!isCurrent()) return 'superseded'
    return index === 'no-room' ? 'too-large' : store(key, ref, index)
  }

  async function loadIndex(ref: IndexRef): Promise<VaultIndex | 'too-large' | 'no-room'> {
    const size = await source.estimateBytes(ref)
    if (size > budgetBytes) return 'too-large'
    // Other loads take the room for now: no verdict on this vault.
    if (loadingBytes + size > budgetBytes) return 'no-room'

    loadingBytes += size
    evictToBudget()
    try {
      const index = createIndex({ dimension: ref.dimension })
      await source.load(ref, rows => {
        index.put(rows)
        if (index.bytes > budgetBytes) throw budgetExceeded
      })
      index.trim()
      stats.loads++
      return index
    } catch (error) {
      if (error !== budgetExceeded) throw error
      return 'too-large'
    } finally {
      loadingBytes -= size
    }
  }

  function store(key: string, { scope }: IndexRef, loaded: VaultIndex | 'too-large') {
    const fits = loaded !== 'too-large' && loaded.bytes <= budgetBytes
    const index = fits ? loaded : 'too-large'
    const bytes = fits ? loaded.bytes : tooLargeEntryBytes
    const { epoch, revision } = scope
    entries.set(key, { index, bytes, epoch, revision, cachedAt: now() })
    cachedBytes += bytes
    evictToBudget()
    return index
  }

  function drop(key: string): boolean {
    cachedBytes -= entries.get(key)?.bytes ?? 0
    return entries.delete(key)
  }

  /** What is being worked on stays: somebody has just asked for it. */
  function evictToBudget() {
    for (const key of entries.keys()) {
      if (cachedBytes + loadingBytes <= budgetBytes) return
      if (!pending.has(key) && drop(key)) stats.evictions++
    }
  }

  return {
    async get(ref) {
      const key = cacheKey(ref)
      for (;;) {
        const index = lookUp(key, ref)
        if (index) return index

        const current = pending.get(key)
        if (current && !covers(current, ref.scope) && current.epoch === ref.scope.epoch) {
          // Too early for us, but it goes on from where it ends. Its failure is not ours.
          await current.outcome.catch(() => 'superseded')
          continue
        }
        const pendingLoad = current && covers(current, ref.scope) ? current : start(key, ref)
        const outcome = await pendingLoad.outcome
        if (outcome !== 'superseded') return outcome
      }
    },

    forget(vault) {
      const belongsToVault = (key: string) => key.startsWith(`${vault}\n`)
      for (const key of [...pending.keys()].filter(belongsToVault)) pending.delete(key)
      for (const key of [...entries.keys()].filter(belongsToVault)) drop(key)
    },

    get bytes() {
      return cachedBytes + loadingBytes
    },
    budget: budgetBytes,
    get count() {
      return [...entries.values()].filter(({ index }) => index !== 'too-large').length
    },
    stats: () => ({ ...stats }),
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
