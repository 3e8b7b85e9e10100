import { recall } from '#shared/vault/read/search/recall.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { visibilityOf, isPermitted } from '#shared/domain/visibility.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import { foreignStopWords, stopWords } from '#shared/search/words/stop-words.ts'
import { parseSpeakerPrefix } from '#shared/search/words/index-terms.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'

export type NearestBackend = Stores & {
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
}

/** Memories near some facts: all of them, each once, and for each fact its own. */
export type NearbyMemories = { memories: NearMemory[]; near: NearMemory[][] }

/** What of a memory a comparison needs. */
export type NearMemory = Pick<
  SharedMemory,
  'id' | 'text' | 'tags' | 'author' | 'acquiredAt' | 'version' | 'reviewed'
> &
  Partial<Pick<SharedMemory, 'byHand' | 'confirmedAt'>>

/** Memories a fact is compared with, and how many of them are those that a search ranks first. */
const nearMax = 8
const rankedMax = 5
/** Candidates for those. */
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
  const unrestrictedViewer = { ...viewer, wildcard: true }
  return findNearby(backend, unrestrictedViewer, texts, {
    accepts: ({ tags }, fact) =>
      !isPermitted(visibility, tags) && isPermitted(readers[fact]!, tags),
  })
}

type NearbyFilter = { accepts(memory: SharedMemory, fact: number): boolean }

async function findNearby(
  backend: NearestBackend,
  viewer: MemberScope,
  texts: readonly string[],
  { accepts }: NearbyFilter,
): Promise<NearbyMemories> {
  const scope = toSharedVaultScope(viewer)
  const idLists: string[][] = []
  for (const text of texts) {
    const anything = { tiers: undefined, importance: undefined, relevantOnly: false }
    // No session: of the member's own vault nothing is looked at.
    const question = {
      text: withoutPrefix(text),
      limit: scannedMax,
      sessions: [],
      embeddings: undefined,
      ...anything,
    }
    const rows = await recall(backend, { scope, memberScope: viewer }, question)
    idLists.push(rows.map(({ memory }) => memory.id))
  }
  const ids = [...new Set(idLists.flat())]
  // In their current state, with the version that a change will be checked against.
  const rows = ids.length === 0 ? [] : await sharedByIds(backend.mongo, scope, ids)
  const byId = new Map(rows.map(row => [row.id, row]))
  const wordsById = new Map(rows.map(({ id, text }) => [id, wordsOf(text)]))
  // The local embedder knows words only: what shares none with a fact is not near it.
  const isLocal = backend.embedders.defaultModel === 'local'
  const near = idLists.map((list, fact) => {
    const words = wordsOf(texts[fact]!)
    const candidates = list
      .flatMap(id => byId.get(id) ?? [])
      .filter(({ id }) => !isLocal || shareWord(wordsById.get(id), words))
      .filter(memory => accepts(memory, fact))
    return pickNear(candidates, ({ id }) => sharedWords(wordsById.get(id), words))
  })
  return { memories: [...new Set(near.flat())], near }
}

/** The text with the name that it begins with, as in `Payroll: …`, as one of its words. */
function withoutPrefix(text: string): string {
  const prefix = parseSpeakerPrefix(text)
  return prefix ? `${prefix.names.join(' ')} ${text.slice(prefix.length)}` : text
}

/**
 * The candidates that rank first, and of the others those that share the rarest words with the text: where
 * many memories have its phrase, the few that have its name would not be among the first.
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
  const others = candidates
    .map((memory, rank) => ({ memory, rarity: rarity[rank]! }))
    .slice(rankedMax)
    .toSorted((one, other) => other.rarity - one.rarity)
  return [...candidates.slice(0, rankedMax), ...others.map(({ memory }) => memory)].slice(
    0,
    nearMax,
  )
}

/** Scripts that put no space between words. */
const withoutSpaces =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u

/** Letters of a word that tell it from others, whatever its ending. */
const stemLength = 5

/** What two texts are compared by; undefined where words cannot be told apart. */
type TextWords = ReadonlySet<string> | undefined

export function wordsOf(text: string): TextWords {
  if (withoutSpaces.test(text)) return undefined
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  const telling = words.filter(word => !stopWords.has(word) && !foreignStopWords.has(word))
  return new Set(telling.map(word => word.slice(0, stemLength)))
}

/** Whether two texts may be about the same thing, as far as their words tell. */
export const shareWord = (one: TextWords, other: TextWords): boolean =>
  one === undefined || other === undefined || [...one].some(word => other.has(word))

/** The words that two texts share; none where words cannot be told apart. */
export const sharedWords = (one: TextWords, other: TextWords): string[] =>
  one === undefined || other === undefined ? [] : [...one].filter(word => other.has(word))
