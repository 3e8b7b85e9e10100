import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { createNearestSearch } from '#shared/vault/read/nearest-atlas.mongo.ts'
import { createNearestScan } from '#shared/vault/read/nearest-scan.mongo.ts'
import type { Nearest, HearScan } from '#shared/vault/read/nearest.ts'

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
