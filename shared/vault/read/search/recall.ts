import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Memory, VaultKind } from '#shared/domain/memory.ts'
import type { TextExclusion } from '#shared/vault/read/search/already-in-conversation.ts'
import { boundsAsOf, momentOf } from '#shared/vault/read/search/as-of.ts'
import {
  undefinedIfUnavailable,
  openSharedEmbedders,
  sharedPartition,
} from '#shared/vault/base/shared-embedders.ts'
import { forgetWrongEmbedder } from '#shared/vault/base/embed-to-store.ts'
import { searchableIndex, type IndexBackend } from '#shared/vault/read/search/searchable-index.ts'
import type { IndexRef, VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { rankInTurns } from '#shared/search/ranking/rank.ts'
import type { Abstention, EmbeddedQuestion } from '#shared/search/ranking/rank-question.ts'
import type { SearchHit } from '#shared/search/ranking/search-hits.ts'
import { selectQuestions, type Question } from '#shared/search/query/select-questions.ts'
import { isContext } from '#shared/search/ranking/signals.ts'
import { recallSeconds } from '#shared/core/metrics.ts'
import { withMemorySpan } from '#shared/core/trace.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import { embeddingTimeoutMs, withEmbeddingTimeout } from '#shared/models/model-refusal.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { Config } from '#shared/core/config.ts'
import { tellText } from '#shared/domain/context-block.ts'
import { rerankOrder } from '#shared/models/rerank.ts'
import { bestPassage } from '#shared/search/query/best-passage.ts'
import type { MemoryFilter } from '#shared/vault/read/search/nearest.ts'
import { visiblePartition } from '#shared/vault/read/search/index-source.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

export type RecallQuestion = MemoryFilter & {
  text: string
  /** Rank for the text as a whole, not for its sentences. */
  undivided?: boolean | undefined
  /** The parts of the text to rank for, where they were selected before. */
  parts?: readonly Question[] | undefined
  /** What will be recalled for next: it is embedded with this text, so that it costs no call of its own. */
  followedBy?: string | undefined
  limit: number
  /** Sessions to search; null is the core vault. */
  sessions: (string | null)[]
  embeddings: string | undefined
  /** Lowest score, 0 to 1. */
  minScore?: number | undefined
  /** Epoch ms: later memories are unknown, and the question is asked then. */
  asOf?: number | undefined
  /** Event times in [from, to), epoch milliseconds: others are left out. */
  within?: { from: number; to: number } | undefined
  /** Leave out rows that are not relevant, even if none remains. */
  relevantOnly: boolean
  /** Texts that the request contains already. */
  excludedTexts?: TextExclusion | undefined
  /** Called with the number of memories that match in a space, among the best or not. */
  onMatchCount?: ((count: number) => void) | undefined
  /** Called with why what matches is left out, where only relevant rows are wanted. */
  onAbstain?: ((reason: Abstention) => void) | undefined
}

/** What a request asks of memories besides its words. */
export type RecallFilters = MemoryFilter & Pick<RecallQuestion, 'minScore' | 'asOf'>

/** A row, and the part of the vault it comes from; of several vaults also which. */
export type RecalledMemory = SearchHit & { source: 'core' | 'session' | 'org'; vault?: VaultKind }

type RecallBackend = IndexBackend & {
  embedders: Embedders
  queryVectors: QueryVectorCache
}

/**
 * Finds the memories of a vault that are relevant to a text, best first; for a member also what they may see of
 * the shared memory, and those of the other vaults that are asked, in one ranking. Vaults are ranked by their indexes in memory; one that is too large, or
 * still being loaded, is searched in the database and its candidates are ranked the same way.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable` when the memory store is
 *   out of reach.
 */
export async function recall(
  backend: RecallBackend,
  { scope, memberScope, asked }: Pick<Caller, 'scope' | 'memberScope' | 'asked'>,
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const until = performance.now() + embeddingTimeoutMs
  const model = question.embeddings ?? backend.embedders.defaultModel
  const embedder = await withEmbeddingTimeout(backend.embedders.get(model), model)
  const timed = { ...question, until, asked }
  const sessions = asked?.searchesMain === false ? [] : question.sessions
  const spaces: [Embedder, RecallPartition[]][] = [
    [embedder, sessions.map(session => ({ scope, session }))],
  ]
  const join = (one: Embedder, partition: RecallPartition): void => {
    const same = spaces.find(([{ space }]) => space === one.space)
    if (same) same[1].push(partition)
    else spaces.push([one, [partition]])
  }
  if (asked?.owner) {
    const { scope: own, embeddings } = asked.owner
    join(await backend.embedders.get(embeddings), { scope: own, session: null })
  }
  const shared = memberScope ? [sharedPartition(memberScope)] : []
  const [usual, ...former] = memberScope
    ? await openSharedEmbedders(backend, memberScope.orgSpace)
    : []
  if (usual) join(usual, shared[0]!)
  const rankings = await Promise.all([
    ...spaces
      .filter(([, partitions]) => partitions.length > 0)
      .map(([one, partitions]) => rankIn(backend, one, partitions, timed)),
    ...former.map(one => undefinedIfUnavailable(rankIn(backend, one, shared, timed))),
  ])
  if (rankings.length === 1) return rankings[0]!
  const found = rankings.flatMap(rows => rows ?? [])
  const merged = mergeRankings(found, question.relevantOnly ? 'relevance' : 'score')
  return merged.slice(0, question.limit)
}

/** A part of a vault to search; of a shared vault only what `audience` may see. */
type RecallPartition = Pick<IndexRef, 'scope' | 'session' | 'audience'>

async function rankIn(
  backend: RecallBackend,
  embedder: Embedder,
  partitions: readonly RecallPartition[],
  question: RecallQuestion & { until: number; asked: Caller['asked'] },
): Promise<RecalledMemory[]> {
  const embedding = forgetWrongEmbedder(
    backend,
    embedder,
    partitions.map(({ scope }) => scope),
    embedQuestions(backend, embedder, question),
  )
  const questions = await withEmbeddingTimeout(
    embedding,
    embedder.model,
    question.until - performance.now(),
  )
  const vectors = questions.flatMap(one => one.vector ?? [])
  if (vectors.length === 0) return []
  let stopRankTimer = (): unknown => undefined
  const openIndexes = async () => {
    const stopLoadTimer = recallSeconds.startTimer({ stage: 'index' })
    const indexes = await Promise.all(
      partitions.map(partition =>
        searchableIndex(backend, { ...partition, embedder, vectors, question }),
      ),
    )
    stopLoadTimer()
    stopRankTimer = recallSeconds.startTimer({ stage: 'rank' })
    return indexes
  }
  const found = await rankInTurns(openIndexes, questions, {
    now: momentOf(backend, question.asOf),
    limit: question.limit,
    floor: question.relevantOnly,
    minScore: question.minScore,
    ...(!question.relevantOnly && { wholeText: question.text }),
    excludeTexts: question.excludedTexts,
    calibration: embedder.calibration,
    onAbstain: question.onAbstain,
    onMatchCount: question.onMatchCount,
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
    condition: question.condition,
    sessions: partitions.map(({ session }) => session),
    ...boundsAsOf(question.asOf),
    ...question.within,
  })
  stopRankTimer()
  return found.map(row => toRecalled(row, partitions[row.indexNumber]!, question.asked))
}

/**
 * The parts of the text to search for, the most specific one first; names have no vector. Without any, the text
 * as it is, unless only relevant rows are wanted.
 */
async function embedQuestions(
  { queryVectors }: RecallBackend,
  embedder: Embedder,
  { text, undivided, parts, relevantOnly, followedBy }: RecallQuestion,
): Promise<EmbeddedQuestion[]> {
  const selected = undivided ? [{ text, kind: 'whole' } as const] : (parts ?? selectQuestions(text))
  const questions: readonly Question[] =
    selected.length > 0 || relevantOnly ? selected : [{ text, kind: 'whole' }]
  const embedded = questions.filter(({ kind }) => kind !== 'name')
  const texts = embedded.map(question => question.text)
  const vectors = await queryVectors.embedAll(embedder, followedBy ? [...texts, followedBy] : texts)
  return questions.map(question => ({
    ...question,
    vector: vectors[embedded.indexOf(question)] ?? null,
  }))
}

/** Names the part of the vault of a row; of several vaults also whose it is: words of an owner are not the user's. */
function toRecalled(
  row: SearchHit,
  { scope, session, audience }: RecallPartition,
  asked: Caller['asked'],
): RecalledMemory {
  const source = audience ? 'org' : session === null ? 'core' : 'session'
  if (!asked) return { ...row, source }
  const isOwners = scope.vault === asked.owner?.scope.vault
  const vault = audience ? 'team' : isOwners ? 'own' : asked.main
  const { role, tier } = row.memory
  const author = isOwners && role === 'user' && tier === 1 && { author: 'owner' }
  return { ...row, source, vault, memory: { ...row.memory, ...author } }
}

/** Merges rankings, best first; of identical texts only the newest row stays. */
export function mergeRankings<Row extends SearchHit>(
  rows: readonly Row[],
  by: 'relevance' | 'score',
): Row[] {
  const newest = new Map<string, Row>()
  for (const row of rows) {
    const text = row.memory.text.normalize('NFC').trim()
    const known = newest.get(text)
    // Another model has found the same memory.
    const others = known && known.memory.id !== row.memory.id ? known.copies : 0
    const copies = row.copies + others
    const shown = known && known.memory.at >= row.memory.at ? known : row
    newest.set(text, { ...shown, copies })
  }
  return [...newest.values()].sort((a, b) => b[by] - a[by])
}

/** Memories that a reranker puts in order: enough to bring up what the ranking had too low. */
const candidatesMin = 40
const candidatesMax = 60

/**
 * As `recall`, in the order of the operator's reranker where there is one. None of the memories that match is
 * dropped, one of the very text that was asked stays first, and scores stay sorted, since the memories take over
 * each other's. Without its answer everything is as without a reranker.
 */
export const recallReranked = (
  ...parameters: Parameters<typeof recallInOrder>
): Promise<RecalledMemory[]> =>
  withMemorySpan(
    'search_memory',
    {
      vault: parameters[1].scope.vault,
      ids: (rows: RecalledMemory[]) => rows.map(({ memory }) => memory.id),
    },
    () => recallInOrder(...parameters),
  )

async function recallInOrder(
  backend: Parameters<typeof recall>[0] & { config: Pick<Config, 'reranker'> },
  caller: Parameters<typeof recall>[1] & Pick<Caller, 'scope'>,
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const found = await recall(backend, caller, question)
  const { reranker } = backend.config
  // What only surrounds the question is not worth another wait.
  if (!reranker || question.undivided) return found
  const { limit } = question
  const mayHaveMore = found.length === limit && limit < candidatesMin
  const candidates = mayHaveMore
    ? await recall(backend, caller, {
        ...question,
        limit: candidatesMin,
        onMatchCount: undefined,
        onAbstain: undefined,
      })
    : found
  const isOpen = ({ relevance, signals }: RecalledMemory): boolean =>
    relevance !== Infinity && !isContext(signals)
  const open = candidates.slice(0, candidatesMax).filter(isOpen)
  if (open.length < 2) return found
  const texts = open.map(({ memory }) =>
    tellText({ ...memory, passage: bestPassage(memory.text, question.text) }),
  )
  const stopTimer = recallSeconds.startTimer({ stage: 'rerank' })
  const order = await rerankOrder(reranker, question.text, texts)
  stopTimer()
  if (!order) return found
  const reordered = order.map((from, at) => {
    const { score, relevance } = open[at]!
    return { ...open[from]!, score, relevance }
  })
  let next = 0
  return candidates
    .map((row, at) => (at < candidatesMax && isOpen(row) ? reordered[next++]! : row))
    .slice(0, limit)
}

type ReloadBackend = {
  embedders: Embedders
  vaultIndexes: VaultIndexes
  memories: MemoryStore
  postgres: Postgres
  now: () => number
}

/**
 * Memories recalled before, in their current form, in no order. Those that were deleted, have expired or may no
 * longer be seen by the caller are missing. Nothing is embedded or ranked.
 */
export async function reloadRecalled(
  backend: ReloadBackend,
  { scope, memberScope }: Pick<Caller, 'scope' | 'memberScope'>,
  snapshot: {
    ids: readonly string[]
    /** The sessions they are from; null is the core vault. */
    sessions: readonly (string | null)[]
    embeddings: string | undefined
  },
): Promise<Memory[]> {
  const { ids, sessions, embeddings } = snapshot
  if (ids.length === 0) return []
  const [embedder, shared] = await Promise.all([
    backend.embedders.get(embeddings),
    memberScope ? openSharedEmbedders(backend, memberScope.orgSpace) : [],
  ])
  const memories = await Promise.all([
    ...sessions.map(session => findInPartition(backend, embedder, { scope, session }, ids)),
    ...shared.map(one => findInPartition(backend, one, sharedPartition(memberScope!), ids)),
  ])
  const byId = new Map(memories.flat().map(memory => [memory.id, memory]))
  return [...byId.values()].filter(({ expiresAt = Infinity }) => expiresAt > backend.now())
}

async function findInPartition(
  { vaultIndexes, memories, postgres }: ReloadBackend,
  { space, dimension }: Embedder,
  partition: RecallPartition,
  ids: readonly string[],
): Promise<Memory[]> {
  const vaultIndex = await vaultIndexes.get({ ...partition, space, dimension })
  if (vaultIndex !== 'too-large') return ids.flatMap(id => vaultIndex.find(id) ?? [])
  return memories.byIds(partition.scope, await visiblePartition(postgres, partition), space, ids)
}
