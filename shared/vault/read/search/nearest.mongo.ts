import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { createNearestIndexSearch } from '#shared/vault/read/search/nearest-atlas.mongo.ts'
import { createNearestScan } from '#shared/vault/read/search/nearest-scan.mongo.ts'
import type {
  NearestListeners,
  NearestSearch,
  RecentMemories,
} from '#shared/vault/read/search/nearest.ts'

/**
 * The search of this deployment: by index where MongoDB has vector search, else by scanning. A deployment
 * that has none is asked again later.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function chooseNearestSearch(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  {
    recent,
    now = Date.now,
    ...listeners
  }: NearestListeners & { recent: RecentMemories; now?: () => number },
): Promise<NearestSearch> {
  const scan = createNearestScan(mongo)
  const isMissing = !(await mongo.hasVectorSearch())
  if (isMissing) listeners.onMissing?.(undefined)
  return createNearestIndexSearch(mongo, scan, { listeners, isMissing, recent, now })
}
