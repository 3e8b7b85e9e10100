import { createSlices } from '#shared/core/event-loop.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import type { IndexRef, IndexSource } from '#shared/search/index/index-source.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'

/** Putting so many rows takes some milliseconds at 3,072 dimensions, and indexing the words of so many characters. */
const putRowsMax = 20
const putCharactersMax = 8_000

/** Rows that are read in a few hundredths of a second: a search rather waits for them. */
const quickRowsMax = 1_000

/** The loads in progress: rows read so far, and rows expected. */
export type LoadProgress = { indexes: number; rows: number; expected: number }

type LoaderOptions = {
  /** Bytes of one index, and of all that are being loaded. */
  budget: number
  createIndex: (options: { dimension: number; packLater: boolean }) => VaultIndex
  /** Called once a load has been given its share of the budget. */
  onReserve: () => void
}

const budgetExceeded = new Error('An index exceeded the budget while it was loaded')

/** Loads whole indexes from their source, and counts what is being loaded. */
export class IndexLoader {
  readonly #source: IndexSource
  readonly #options: LoaderOptions
  #bytes = 0
  readonly #progress: LoadProgress = { indexes: 0, rows: 0, expected: 0 }

  constructor(source: IndexSource, options: LoaderOptions) {
    this.#source = source
    this.#options = options
  }

  /** The estimates of the indexes being loaded. */
  get bytes(): number {
    return this.#bytes
  }

  get progress(): LoadProgress {
    return { ...this.#progress }
  }

  /**
   * @param onSize called with the number of rows known: whether reading them takes long
   * @returns `no-room` while other loads use the budget.
   */
  async load(
    ref: IndexRef,
    onSize: (isLong: boolean) => void,
  ): Promise<VaultIndex | 'too-large' | 'no-room'> {
    const { budget, createIndex } = this.#options
    const { rows: expected, bytes } = await this.#source.estimate(ref)
    if (bytes > budget) return 'too-large'
    // Concurrent loads use up the budget for now: not cached as `too-large`.
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
      return index
    } catch (error) {
      if (error !== budgetExceeded) throw error
      return 'too-large'
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

/** One row at least. */
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
