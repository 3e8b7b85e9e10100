import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { createNearestIndexSearch } from '#shared/vault/read/nearest-atlas.mongo.ts'
import { createNearestScan } from '#shared/vault/read/nearest-scan.mongo.ts'
import type { NearestSearch, ScanFallbackListener } from '#shared/vault/read/nearest.ts'

/**
 * The search of this deployment: by index where MongoDB has vector search, else by scanning.
 *
 * @param onScan called when the index cannot answer and the scan does instead
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function chooseNearestSearch(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  { onScan = () => {} }: { onScan?: ScanFallbackListener } = {},
): Promise<NearestSearch> {
  const scan = createNearestScan(mongo)
  return (await mongo.hasVectorSearch()) ? createNearestIndexSearch(mongo, scan, onScan) : scan
}
