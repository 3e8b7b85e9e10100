import type { Breaker } from '#shared/core/breaker.ts'
import { Refusal } from '#shared/core/errors.ts'
import { memoryStoreUnreachable } from '#shared/core/refusals.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { ProfileSource } from '#shared/vault/read/prepare/profile-cache.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'

/** The reads of MongoDB that a search may need: refused at once while MongoDB does not answer. */
export function guardReads(
  breaker: Breaker,
  { memories, nearest }: { memories: MemoryStore; nearest: NearestSearch },
): {
  memories: Pick<MemoryStore, 'stream' | 'byIds' | 'count'>
  nearest: NearestSearch
} {
  const guard =
    <Args extends unknown[], Result>(read: (...args: Args) => Promise<Result>) =>
    (...args: Args): Promise<Result> =>
      breaker.run(() => read(...args), memoryStoreUnreachable, isStoreFault)
  return {
    memories: {
      stream: guard((...args: Parameters<MemoryStore['stream']>) => memories.stream(...args)),
      byIds: guard((...args: Parameters<MemoryStore['byIds']>) => memories.byIds(...args)),
      count: guard((...args: Parameters<MemoryStore['count']>) => memories.count(...args)),
    },
    nearest: {
      candidates: guard((...args: Parameters<NearestSearch['candidates']>) =>
        nearest.candidates(...args),
      ),
      indexed: guard((...args: Parameters<NearestSearch['indexed']>) => nearest.indexed(...args)),
      hasIndex: () => nearest.hasIndex(),
    },
  }
}

/** The same for profiles. */
export const guardProfiles = (breaker: Breaker, source: ProfileSource): ProfileSource => ({
  load: (ref, max) =>
    breaker.run(() => source.load(ref, max), memoryStoreUnreachable, isStoreFault),
  changes: (ref, since) =>
    breaker.run(() => source.changes(ref, since), memoryStoreUnreachable, isStoreFault),
})

const isStoreFault = (error: unknown): boolean =>
  error instanceof Refusal && error.reason === 'unavailable'
