import { createSlices } from '#shared/core/event-loop.ts'
import { tiers, type EmbeddedMemory, type VaultScope } from '#shared/domain/memory.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import type { Visibility } from '#shared/domain/visibility.ts'

/** Rows and characters that are put in some milliseconds, at 3,072 dimensions. */
const putRowsMax = 20
const putCharactersMax = 8_000

/** Rows that a search waits for: they are read in some 10 ms. */
const quickRowsMax = 1_000

/** The loads in progress: rows read so far, and rows expected. */
export type LoadProgress = { indexes: number; rows: number; expected: number }

type LoaderOptions = {
  /** Most bytes of one index, and of all loads in progress. */
  budget: number
  createIndex: (options: { dimension: number; packLater: boolean }) => VaultIndex
  /** Called when a load has reserved its share of the budget. */
  onReserve: () => void
}

/** Rows of all tiers. */
export const rowCount = ({ byTier }: VaultIndex): number =>
  tiers.reduce((sum, tier) => sum + byTier[tier].count, 0)

const budgetExceeded = new Error('An index exceeded the budget while it was loaded')

/** Loads whole indexes from their source, and counts the loads in progress. */
export class IndexLoader {
  readonly #source: IndexSource
  readonly #options: LoaderOptions
  #bytes = 0
  readonly #progress: LoadProgress = { indexes: 0, rows: 0, expected: 0 }

  constructor(source: IndexSource, options: LoaderOptions) {
    this.#source = source
    this.#options = options
  }

  /** Estimated bytes of the loads in progress. */
  get bytes(): number {
    return this.#bytes
  }

  get progress(): LoadProgress {
    return { ...this.#progress }
  }

  /**
   * @param onSize called when the number of rows is known: whether reading them takes long
   * @returns the index, and how many of its rows were not read from what is saved; `no-room` while other loads use the
   *   budget
   */
  async load(
    ref: IndexRef,
    onSize: (isLong: boolean) => void,
  ): Promise<{ index: VaultIndex; unsaved: number } | 'too-large' | 'no-room'> {
    const { budget, createIndex } = this.#options
    const restored = await this.#restore(ref)
    if (restored) return restored
    const { rows: expected, bytes } = await this.#source.estimate(ref)
    if (bytes > budget) return 'too-large'
    // Concurrent loads use the budget for now: not cached as `too-large`.
    if (this.#bytes + bytes > budget) return 'no-room'

    onSize(expected > quickRowsMax)
    const reserved = this.#reserve(expected, bytes)
    try {
      const index = createIndex({ dimension: ref.dimension, packLater: true })
      const slices = createSlices()
      await this.#source.load(ref, async rows => {
        await putInSlices(index, rows, slices)
        reserved.read(rows.length)
        if (index.bytes > budget) throw budgetExceeded
      })
      await trimInSlices(index)
      return { index, unsaved: rowCount(index) }
    } catch (error) {
      if (error !== budgetExceeded) throw error
      return 'too-large'
    } finally {
      reserved.release()
    }
  }

  /** Reads what is saved of an index and catches up; undefined where that does not do. */
  async #restore(ref: IndexRef): Promise<{ index: VaultIndex; unsaved: number } | undefined> {
    const saved = await this.#source.saved?.(ref)
    if (!saved || this.#bytes + saved.size > this.#options.budget) return undefined
    const reserved = this.#reserve(saved.rows, saved.size)
    try {
      const bytes = await saved.read()
      if (!bytes) return undefined
      const index = this.#options.createIndex({ dimension: ref.dimension, packLater: false })
      index.restore(bytes)
      if (saved.revision >= ref.scope.revision) return { index, unsaved: 0 }
      const changes = await this.#source.changes(ref, saved.revision)
      if (!changes) return undefined
      index.remove(changes.remove)
      await putInSlices(index, changes.put)
      return { index, unsaved: changes.put.length + changes.remove.length }
    } finally {
      reserved.release()
    }
  }

  #reserve(expected: number, bytes: number): { read(rows: number): void; release(): void } {
    const progress = this.#progress
    let rowsRead = 0
    progress.indexes++
    progress.expected += expected
    this.#bytes += bytes
    this.#options.onReserve()
    return {
      read(rows) {
        rowsRead += rows
        progress.rows += rows
      },
      release: () => {
        progress.indexes--
        progress.rows -= rowsRead
        progress.expected -= expected
        this.#bytes -= bytes
      },
    }
  }
}

/** Puts rows into an index without holding the event loop. */
export async function putInSlices(
  index: VaultIndex,
  rows: readonly EmbeddedMemory[],
  slices = createSlices(),
): Promise<void> {
  for (let start = 0; start < rows.length;) {
    const end = endOfPut(rows, start)
    index.put(rows.slice(start, end))
    start = end
    await slices.pause()
  }
}

/** Returns the end of the next put: at least one row. */
function endOfPut(rows: readonly EmbeddedMemory[], start: number): number {
  const last = Math.min(rows.length, start + putRowsMax)
  let end = start
  for (let characters = 0; end < last && characters < putCharactersMax; end++) {
    characters += rows[end]!.text.length
  }
  return end
}

/** Frees unused capacity of an index that was loaded, without holding the event loop. */
async function trimInSlices(index: VaultIndex): Promise<void> {
  const slices = createSlices()
  const steps = index.trimSteps()
  while (!steps.next().done) await slices.pause()
  index.trim()
}

/** One vector space of a vault, or of a session of it (`null`: the core vault). */
export type IndexRef = {
  scope: VaultScope
  session: string | null
  space: string
  dimension: number
  /**
   * What the caller may see of a shared vault. Callers of equal visibility share an index of what they may see, so
   * hidden memories affect neither results nor cost.
   */
  audience?: Visibility
}

/** Reads the content of indexes from the stores. */
export type IndexSource = {
  /**
   * Passes all memories of the space in batches and waits for each. They are at least as new as the revision of the
   * scope; those in order of time are indexed fastest.
   */
  load(ref: IndexRef, onBatch: (rows: EmbeddedMemory[]) => Promise<void>): Promise<void>
  /**
   * Returns what changed after revision `since`: rows to put, and ids to remove. Null when the changes are unknown and
   * everything has to be loaded.
   */
  changes(ref: IndexRef, since: number): Promise<{ put: EmbeddedMemory[]; remove: string[] } | null>
  /** Returns the number of rows and the estimated bytes of the index, before anything is read. */
  estimate(ref: IndexRef): Promise<{ rows: number; bytes: number }>
  /** Finds what `save` was given, of the same epoch and code. Never rejects. */
  saved?(ref: IndexRef): Promise<SavedIndex | undefined>
  /** Keeps an index of the revision of the scope for the next load. Never rejects. */
  save?(ref: IndexRef, index: { rows: number; bytes: Buffer }): Promise<void>
}

/** An index as it was at a revision. */
export type SavedIndex = {
  revision: number
  rows: number
  size: number
  /** What `VaultIndex.save` has returned; undefined when it is gone, damaged or out of reach. Never rejects. */
  read(): Promise<Buffer | undefined>
}

/**
 * Keeps the rows that an index of a dimension can hold. A vector of another length, left by an exchanged model, or with
 * NaN or an infinity keeps its memory out of the index, not out of the vault.
 */
export const indexableRows = (
  rows: readonly EmbeddedMemory[],
  dimension: number,
): EmbeddedMemory[] =>
  rows.filter(({ vector }) => vector.length === dimension && isFiniteVector(vector))

/**
 * Sums a vector: the sum of finite 32-bit floats is finite. Four sums, as each addition waits for the one before: 1.1 µs
 * at 1,536 dimensions.
 */
function isFiniteVector(vector: Float32Array): boolean {
  const { length } = vector
  const whole = length - (length % 4)
  let a = 0
  let b = 0
  let c = 0
  let d = 0
  for (let i = 0; i < whole; i += 4) {
    a += vector[i]!
    b += vector[i + 1]!
    c += vector[i + 2]!
    d += vector[i + 3]!
  }
  for (let i = whole; i < length; i++) a += vector[i]!
  return Number.isFinite(a + b + c + d)
}
