import { recall } from '#shared/vault/read/search/recall.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { visibilityOf, isPermitted } from '#shared/domain/visibility.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import { sharedStems, shareStem, stemsOf } from '#shared/org/pipeline/text-words.ts'
import { parseSpeakerPrefix } from '#shared/search/words/index-terms.ts'
import type { Stores } from '#shared/storage/stores.ts'

export type NearestBackend = Stores & Parameters<typeof recall>[0]

export type NearMemory = Pick<
  SharedMemory,
  'id' | 'text' | 'tags' | 'author' | 'acquiredAt' | 'version' | 'reviewed'
> &
  Partial<Pick<SharedMemory, 'byHand' | 'confirmedAt'>>

/** The memories a fact is compared with, and the number of them that a search ranks first. */
const nearMax = 8
const rankedMax = 5
/** The candidates for them. */
const scannedMax = 25

/**
 * Finds the memories near each text, of those that the viewer may see now.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function findNearbyVisible(
  backend: NearestBackend,
  viewer: MemberScope,
  texts: readonly string[],
): Promise<NearMemory[][]> {
  const visibility = visibilityOf(viewer)
  return findNearby(backend, viewer, texts, {
    accepts: ({ tags }) => isPermitted(visibility, tags),
  })
}

/**
 * Finds the memories near each fact that the author may not see, though all who may see the fact can.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function findNearbyHidden(
  backend: NearestBackend,
  viewer: MemberScope,
  facts: readonly { text: string; tags: readonly string[] }[],
): Promise<NearMemory[][]> {
  const visibility = visibilityOf(viewer)
  const readers = facts.map(({ tags }) => visibilityOf({ wildcard: false, allowedTags: [...tags] }))
  const texts = facts.map(({ text }) => text)
  const unrestrictedViewer = { ...viewer, wildcard: true }
  return findNearby(backend, unrestrictedViewer, texts, {
    accepts: ({ tags }, fact) =>
      !isPermitted(visibility, tags) && isPermitted(readers[fact]!, tags),
  })
}

async function findNearby(
  backend: NearestBackend,
  viewer: MemberScope,
  texts: readonly string[],
  { accepts }: { accepts(memory: SharedMemory, fact: number): boolean },
): Promise<NearMemory[][]> {
  const scope = toSharedVaultScope(viewer)
  const idLists: string[][] = []
  for (const text of texts) {
    const rows = await recall(
      backend,
      { scope, memberScope: viewer },
      {
        text: withoutPrefix(text),
        limit: scannedMax,
        // Nothing of the member's own vault.
        sessions: [],
        embeddings: undefined,
        tiers: undefined,
        importance: undefined,
        relevantOnly: false,
      },
    )
    idLists.push(rows.map(({ memory }) => memory.id))
  }
  const ids = [...new Set(idLists.flat())]
  // In their current state, with the version that a change will be checked against.
  const rows = await sharedByIds(backend.mongo, scope, ids)
  const byId = new Map(rows.map(row => [row.id, row]))
  const wordsById = new Map(rows.map(({ id, text }) => [id, stemsOf(text)]))
  // For the local embedder, which knows words only, texts without a common word are not near.
  const isLocal = backend.embedders.defaultModel === 'local'
  return idLists.map((list, fact) => {
    const words = stemsOf(texts[fact]!)
    const candidates = list
      .flatMap(id => byId.get(id) ?? [])
      .filter(({ id }) => !isLocal || shareStem(wordsById.get(id), words))
      .filter(memory => accepts(memory, fact))
    return pickNear(candidates, ({ id }) => sharedStems(wordsById.get(id), words))
  })
}

/** Makes the name that a text begins with, as in `Payroll: …`, one of its words. */
function withoutPrefix(text: string): string {
  const prefix = parseSpeakerPrefix(text)
  return prefix ? `${prefix.names.join(' ')} ${text.slice(prefix.length)}` : text
}

/**
 * Picks the candidates that rank first, and of the others those that share the rarest words with the text: where
 * many memories have its phrase, the few that have its name are not among the first.
 */
function pickNear<Memory>(
  candidates: readonly Memory[],
  wordsWithText: (memory: Memory) => readonly string[],
): Memory[] {
  const words = candidates.map(wordsWithText)
  const counts = Map.groupBy(words.flat(), word => word)
  const rarity = words.map(list =>
    list.reduce((sum, word) => sum + 1 / counts.get(word)!.length, 0),
  )
  const byRarity = candidates
    .map((memory, rank) => ({ memory, rarity: rarity[rank]! }))
    .slice(rankedMax)
    .toSorted((one, other) => other.rarity - one.rarity)
  const first = candidates.slice(0, rankedMax)
  return [...first, ...byRarity.map(({ memory }) => memory)].slice(0, nearMax)
}
