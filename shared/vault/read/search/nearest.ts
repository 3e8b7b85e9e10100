import type { Condition } from '#shared/domain/condition.ts'
import type { Partition } from '#shared/storage/mongo/partition.ts'
import type { Tier, VaultScope, EmbeddedMemory } from '#shared/domain/memory.ts'

/** What a request asks of memories besides its words. */
export type MemoryFilter = {
  tiers?: readonly Tier[] | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance?: number | undefined
  /** Rows that do not meet it are left out. */
  condition?: Condition | undefined
}

/** A search in a vault space that has no index in memory. */
export type NearestQuestion = MemoryFilter & {
  partition: Partition
  space: string
  /** Unit length, of the space's dimension. */
  vector: Float32Array
  /** How many candidates, 1 to 2,000. */
  count: number
  /** Event time, epoch ms: from inclusive, to exclusive. */
  from?: number
  to?: number
}

/** Finds the nearest memories in the database itself. */
export type NearestSearch = {
  /** Best first. A search by index may miss rows that an exact scan finds. */
  candidates(scope: VaultScope, question: NearestQuestion): Promise<EmbeddedMemory[]>
  /** As `candidates`, without a scan: null where no search index can answer. */
  indexed(scope: VaultScope, question: NearestQuestion): Promise<EmbeddedMemory[] | null>
  /** False when `indexed` would answer null at once. */
  hasIndex(): boolean
}

/**
 * Reads the memories of a question that were stored or changed in the last minutes; `too-many` when reading them
 * would cost more than a scan.
 */
export type RecentMemories = (
  scope: VaultScope,
  question: NearestQuestion,
) => Promise<EmbeddedMemory[] | 'too-many'>

export type NearestListeners = {
  /** Called with the reason when an index could not be used, so that it can be logged. */
  onScan?: (event: { space: string; dimension: number; reason: string }) => void
  /** Called with the error by which the deployment says that it has no vector search. */
  onMissing?: (error: unknown) => void
}
