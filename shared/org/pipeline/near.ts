import { recall } from '#shared/vault/read/recall.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { audienceOf, isPermitted } from '#shared/domain/visibility.ts'
import { sharedVaultOf, type MemberScope } from '#shared/domain/member-scope.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'

type Looking = Stores & {
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  now: () => number
}

/** Memories near some facts: all of them, each once, and for each fact its own. */
export type Near = { memories: SharedMemory[]; near: SharedMemory[][] }

/** Memories a fact is compared with. */
const nearMax = 5
/** Looked through for those: most of what is near may be what somebody does see. */
const lookedMax = 25

/**
 * What is near each text of what somebody may see at this moment, and nothing else.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function nearAndSeen(
  backend: Looking,
  viewer: MemberScope,
  texts: readonly string[],
): Promise<Near> {
  const audience = audienceOf(viewer)
  return nearestOf(backend, viewer, texts, {
    limit: nearMax,
    isMeant: ({ tags }) => isPermitted(audience, tags),
  })
}

/**
 * What is near each fact of what somebody may not see, though all who may see the fact can.
 *
 * @throws Refusal as `nearAndSeen`.
 */
export function nearAndHidden(
  backend: Looking,
  viewer: MemberScope,
  facts: readonly { text: string; tags: readonly string[] }[],
): Promise<Near> {
  const audience = audienceOf(viewer)
  const readers = facts.map(({ tags }) => audienceOf({ wildcard: false, allowedTags: [...tags] }))
  const texts = facts.map(({ text }) => text)
  const whole = { ...viewer, wildcard: true }
  return nearestOf(backend, whole, texts, {
    limit: lookedMax,
    isMeant: ({ tags }, fact) => !isPermitted(audience, tags) && isPermitted(readers[fact]!, tags),
  })
}

type Choice = { limit: number; isMeant(memory: SharedMemory, fact: number): boolean }

async function nearestOf(
  backend: Looking,
  viewer: MemberScope,
  texts: readonly string[],
  { limit, isMeant }: Choice,
): Promise<Near> {
  const scope = sharedVaultOf(viewer)
  const found: string[][] = []
  for (const text of texts) {
    const anything = { tiers: undefined, importance: undefined, floor: false }
    // No session: of the member's own vault nothing is looked at.
    const question = { text, limit, sessions: [], embeddings: undefined, ...anything }
    const rows = await recall(backend, { scope, member: viewer }, question)
    found.push(rows.map(({ memory }) => memory.id))
  }
  const ids = [...new Set(found.flat())]
  // As they are now, with the version that a change will be held against.
  const rows = ids.length === 0 ? [] : await sharedByIds(backend.mongo, scope, ids)
  const byId = new Map(rows.map(row => [row.id, row]))
  const near = found.map((list, fact) =>
    list
      .flatMap(id => byId.get(id) ?? [])
      .filter(memory => isMeant(memory, fact))
      .slice(0, nearMax),
  )
  return { memories: [...new Set(near.flat())], near }
}
