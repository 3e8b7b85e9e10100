import type { EmbeddedMemory, Tier, VaultScope } from '#shared/memory/memory.ts'
import type { Mongo } from '#shared/mongo/connect.ts'
import type { Place } from '#shared/mongo/place.ts'
import { createNearestSearch } from '#shared/mongo/nearest-atlas.ts'
import { createNearestScan } from '#shared/mongo/nearest-scan.ts'

/** What to look for in a vault space that is not held as an image. */
export type NearestQuestion = {
  place: Place
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
export type Nearest = {
  /** Best first; exactly the rows an exact scan finds, as far as the deployment's search is exact. */
  candidates(scope: VaultScope, question: NearestQuestion): Promise<EmbeddedMemory[]>
}

/** Hears that an index could not be used and why, so that an operator can be told. */
export type HearScan = (event: { space: string; reason: string }) => void

/**
 * The search of this deployment: by index where it has vector search, else by scanning.
 *
 * @param onScan hears whenever an index that should answer cannot; the scan answers instead.
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function chooseNearest(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  { onScan = () => {} }: { onScan?: HearScan } = {},
): Promise<Nearest> {
  const scan = createNearestScan(mongo)
  return (await mongo.hasVectorSearch()) ? createNearestSearch(mongo, scan, onScan) : scan
}
