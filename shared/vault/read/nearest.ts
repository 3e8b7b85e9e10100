import type { Partition } from '#shared/storage/mongo/partition.ts'
import type { Tier, VaultScope, EmbeddedMemory } from '#shared/domain/memory.ts'

/** What to look for in a vault space that is not held as an image. */
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
  /** Best first; exactly the rows an exact scan finds, as far as the deployment's search is exact. */
  candidates(scope: VaultScope, question: NearestQuestion): Promise<EmbeddedMemory[]>
}

/** Hears that an index could not be used and why, so that an operator can be told. */
export type ScanFallbackListener = (event: { space: string; reason: string }) => void
