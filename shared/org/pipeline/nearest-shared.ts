import { recall } from '#shared/vault/read/recall.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { visibilityOf, isPermitted } from '#shared/domain/visibility.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/nearest.ts'

type NearestBackend = Stores & {
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
}

/** Memories near some facts: all of them, each once, and for each fact its own. */
export type NearbyMemories = { memories: SharedMemory[]; near: SharedMemory[][] }

/** Memories a fact is compared with. */
const nearMax = 5
/** Candidates for those: most memories near a fact may be visible to the author. */
const scannedMax = 25

/**
 * The memories near each text, of those that the viewer may see now.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function findNearbyVisible(
  backend: NearestBackend,
  viewer: MemberScope,
  texts: readonly string[],
): Promise<NearbyMemories> {
  const visibility = visibilityOf(viewer)
  return findNearby(backend, viewer, texts, {
    limit: nearMax,
    accepts: ({ tags }) => isPermitted(visibility, tags),
  })
}

/**
 * The memories near each fact that the author may not see, though all who may see the fact can.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function findNearbyHidden(
  backend: NearestBackend,
  viewer: MemberScope,
  facts: readonly { text: string; tags: readonly string[] }[],
): Promise<NearbyMemories> {
  const visibility = visibilityOf(viewer)
  const readers = facts.map(({ tags }) => visibilityOf({ wildcard: false, allowedTags: [...tags] }))
  const texts = facts.map(({ text }) => text)
  const whole = { ...viewer, wildcard: true }
  return findNearby(backend, whole, texts, {
    limit: scannedMax,
    accepts: ({ tags }, fact) =>
      !isPermitted(visibility, tags) && isPermitted(readers[fact]!, tags),
  })
}

type NearbyFilter = { limit: number; accepts(memory: SharedMemory, fact: number): boolean }

async function findNearby(
  backend: NearestBackend,
  viewer: MemberScope,
  texts: readonly string[],
  { limit, accepts }: NearbyFilter,
): Promise<NearbyMemories> {
  const scope = toSharedVaultScope(viewer)
  const found: string[][] = []
  for (const text of texts) {
    const anything = { tiers: undefined, importance: undefined, relevantOnly: false }
    // No session: of the member's own vault nothing is looked at.
    const question = { text, limit, sessions: [], embeddings: undefined, ...anything }
    const rows = await recall(backend, { scope, memberScope: viewer }, question)
    found.push(rows.map(({ memory }) => memory.id))
  }
  const ids = [...new Set(found.flat())]
  // In their current state, with the version that a change will be checked against.
  const rows = ids.length === 0 ? [] : await sharedByIds(backend.mongo, scope, ids)
  const byId = new Map(rows.map(row => [row.id, row]))
  const near = found.map((list, fact) =>
    list
      .flatMap(id => byId.get(id) ?? [])
      .filter(memory => accepts(memory, fact))
      .slice(0, nearMax),
  )
  return { memories: [...new Set(near.flat())], near }
}
