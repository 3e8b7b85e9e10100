import type { Partition } from '#shared/storage/mongo/partition.ts'
import type { Tier, VaultScope, EmbeddedMemory } from '#shared/domain/memory.ts'

/** A search in a vault space that is too large for an index in memory. */
export type NearestQuestion = {
  partition: Partition
  space: string
  /** Unit length, of the space's dimension. */
  vector: Float32Array
  /** How many candidates, 1 to 2,000. */
  count: number
  tiers?: readonly Tier[]
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance?: number
  /** Event time, epoch ms: from inclusive, to exclusive. */
  from?: number
  to?: number
}

/** Finds the nearest memories in the database itself. */
export type NearestSearch = {
  /** Best first. A search by index may miss rows that an exact scan finds. */
  candidates(scope: VaultScope, question: NearestQuestion): Promise<EmbeddedMemory[]>
}

/** Called with the reason when an index could not be used, so that it can be logged. */
export type ScanFallbackListener = (event: { space: string; reason: string }) => void
