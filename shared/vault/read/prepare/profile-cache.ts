import { LRUCache } from 'lru-cache'
import { createLruCache } from '#shared/core/lru-cache.ts'
import { refusal } from '#shared/core/refusal.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { visibilityKey, type Visibility } from '#shared/domain/visibility.ts'
import type { SourcedStatement } from '#shared/search/profile/build-profile.ts'

/** A partition of a vault as a caller sees it, as of an index. */
export type ProfileRef = { scope: VaultScope; session: string | null; audience?: Visibility }

/** A statement with what a shared memory says of itself. */
export type StoredStatement = SourcedStatement & { tags?: string[]; author?: string }

/** By the ids of their memories. */
export type StatementsById = Map<string, StoredStatement[]>

/** Finds the statements of a partition in the stores. */
export type ProfileSource = {
  /** @returns null where there are more statements than that */
  load(ref: ProfileRef, statementsMax: number): Promise<StatementsById | null>
  /** What changed after a revision; null where everything has to be read again. */
  changes(
    ref: ProfileRef,
    since: number,
  ): Promise<{ changed: string[]; statements: StatementsById } | null>
}

/** The statements of a partition at a revision. They never change: results derived from them can be kept. */
export type ProfileStatements = {
  epoch: number
  revision: number
  byId: StatementsById
  all: readonly StoredStatement[]
}

/** Statements of all vaults together; one takes about 0.5 KB. */
const statementsMax = 200_000
/** Statements of one partition: they are found and ordered in 1 s of CPU. */
const partitionStatementsMax = 100_000
/** A partition that was too large is looked at again after so long, or once it was cleared. */
const tooLargeMs = 600_000
/** The weight of an entry, in addition to its statements. */
const entryWeight = 5

/** Reading a very large vault takes longer: the request ends, the reading goes on. */
const waitMs = 8_000

/** The statements of vaults, as long as they are read; up to date with the revision of each request. */
export class ProfileCache {
  readonly #source: ProfileSource
  readonly #partitionMax: number
  readonly #entries = new LRUCache<string, ProfileStatements>({
    maxSize: statementsMax,
    sizeCalculation: ({ all }) => all.length + entryWeight,
  })
  readonly #pending = new Map<string, Promise<ProfileStatements>>()
  /** The epochs of partitions that were too large. */
  readonly #tooLarge = createLruCache<number>(10_000, tooLargeMs)

  constructor(source: ProfileSource, partitionMax = partitionStatementsMax) {
    this.#source = source
    this.#partitionMax = partitionMax
  }

  /**
   * The statements of a partition, at least as new as the revision of its scope. Callers share a load.
   *
   * @throws Refusal `unavailable` also when reading the vault takes over 8 s; `too-large` for more than 100,000
   *   statements.
   */
  async get(ref: ProfileRef): Promise<ProfileStatements> {
    const key = cacheKey(ref)
    if (this.#tooLarge.get(key) === ref.scope.epoch)
      throw refusal('too-large', 'profileTooLarge', { max: this.#partitionMax })
    for (;;) {
      const known = this.#entries.get(key)
      if (known && covers(known, ref.scope)) return known
      const loading = this.#pending.get(key) ?? this.#start(key, ref, known)
      const loaded = await withTimeout(loading, waitMs, refuseToWait)
      if (covers(loaded, ref.scope)) return loaded
    }
  }

  /** Drops the statements of a vault. */
  forget(vault: string): void {
    for (const key of this.#entries.keys()) {
      if (key.startsWith(`${vault}\n`)) this.#entries.delete(key)
    }
  }

  #start(
    key: string,
    ref: ProfileRef,
    known: ProfileStatements | undefined,
  ): Promise<ProfileStatements> {
    const loading = this.#refreshOrLoad(ref, known)
      .then(loaded => {
        if (loaded && loaded.all.length <= this.#partitionMax) {
          this.#entries.set(key, loaded)
          return loaded
        }
        this.#entries.delete(key)
        this.#tooLarge.set(key, ref.scope.epoch)
        throw refusal('too-large', 'profileTooLarge', { max: this.#partitionMax })
      })
      .finally(() => this.#pending.delete(key))
    // A caller who does not wait any longer does not learn that it failed; the next one reads again.
    loading.catch(() => {})
    this.#pending.set(key, loading)
    return loading
  }

  async #refreshOrLoad(
    ref: ProfileRef,
    known: ProfileStatements | undefined,
  ): Promise<ProfileStatements | null> {
    const { epoch, revision } = ref.scope
    const changes = known?.epoch === epoch ? await this.#source.changes(ref, known.revision) : null
    if (!known || !changes) {
      const loaded = await this.#source.load(ref, this.#partitionMax)
      return loaded && toStatements(ref.scope, loaded)
    }
    const { changed, statements } = changes
    const isUnchanged = statements.size === 0 && !changed.some(id => known.byId.has(id))
    if (isUnchanged) return { ...known, revision }
    const byId = new Map(known.byId)
    for (const id of changed) byId.delete(id)
    for (const [id, found] of statements) byId.set(id, found)
    return toStatements(ref.scope, byId)
  }
}

const toStatements = (
  { epoch, revision }: VaultScope,
  byId: StatementsById,
): ProfileStatements => ({ epoch, revision, byId, all: [...byId.values()].flat() })

function refuseToWait(): never {
  throw refusal('unavailable', 'profileLoading')
}

function cacheKey({ scope, session, audience }: ProfileRef): string {
  const part = session === null ? 'core' : `session ${session}`
  const visibility = audience && !audience.wildcard ? [visibilityKey(audience)] : []
  return [scope.vault, ...visibility, part].join('\n')
}

const covers = (have: ProfileStatements, { epoch, revision }: VaultScope): boolean =>
  have.epoch > epoch || (have.epoch === epoch && have.revision >= revision)
