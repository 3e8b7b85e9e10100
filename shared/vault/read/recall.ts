import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Tier } from '#shared/domain/memory.ts'
import type { TextExclusion } from '#shared/vault/read/already-in-conversation.ts'
import { visibilityOf } from '#shared/domain/visibility.ts'
import { toSharedVaultScope } from '#shared/domain/member-scope.ts'
import { undefinedIfUnavailable, openSharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { visiblePartition } from '#shared/vault/read/index-source.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import type { IndexRef, VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { rank, type SearchHit } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { recallSeconds } from '#shared/core/metrics.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { NearestSearch } from '#shared/vault/read/nearest.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

export type RecallQuestion = {
  text: string
  limit: number
  /** Sessions to search; null is the core vault. */
  sessions: (string | null)[]
  embeddings: string | undefined
  tiers: readonly Tier[] | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Leave out rows that are not relevant, even if none remains. */
  relevantOnly: boolean
  /** Texts that the request contains already. */
  excludedTexts?: TextExclusion | undefined
}

/** A row, and the part of the vault it comes from. */
export type RecalledMemory = SearchHit & { source: 'core' | 'session' | 'org' }

type RecallBackend = {
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  postgres: Postgres
  now: () => number
}

/** Candidates asked of the database for a vault without an index in memory: enough to rank by words and time. */
const candidateCount = ({ limit, excludedTexts }: RecallQuestion): number =>
  Math.min(2_000, Math.max(200, limit * 4) + (excludedTexts?.size ?? 0))

/**
 * Finds the memories of a vault that are relevant to a text, best first; for a member of an organization
 * also what they may see of its shared memory, in one ranking. Vaults are ranked by their indexes in this
 * process's memory; one that is too large is searched in the database and its candidates are ranked the
 * same way.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable` when the memory
 *   store is out of reach.
 */
export async function recall(
  backend: RecallBackend,
  { scope, memberScope }: Pick<Caller, 'scope' | 'memberScope'>,
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const embedder = await backend.embedders.get(question.embeddings)
  const own = question.sessions.map((session): RecallPartition => ({ scope, session }))
  if (!memberScope) return rankIn(backend, embedder, own, question)

  const shared = {
    scope: toSharedVaultScope(memberScope),
    session: null,
    audience: visibilityOf(memberScope),
  }
  const [usual, ...former] = await openSharedEmbedders(backend, memberScope.orgSpace)
  const isSameSpace = usual.space === embedder.space
  const rankings = await Promise.all([
    rankIn(backend, embedder, isSameSpace ? [...own, shared] : own, question),
    ...(isSameSpace ? [] : [rankIn(backend, usual, [shared], question)]),
    ...former.map(one => undefinedIfUnavailable(rankIn(backend, one, [shared], question))),
  ])
  if (rankings.length === 1) return rankings[0]
  return mergeRankings(rankings.flatMap(found => found ?? [])).slice(0, question.limit)
}

/** A part of a vault to search; of a shared vault only what `audience` may see. */
type RecallPartition = Pick<IndexRef, 'scope' | 'session' | 'audience'>

async function rankIn(
  backend: RecallBackend,
  embedder: Embedder,
  partitions: readonly RecallPartition[],
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const vector = await backend.queryVectors.embed(embedder, question.text)
  const stopLoadTimer = recallSeconds.startTimer({ stage: 'image' })
  const indexes = await Promise.all(
    partitions.map(partition =>
      loadVaultIndex(backend, { ...partition, embedder, vector, question }),
    ),
  )
  stopLoadTimer()
  const stopRankTimer = recallSeconds.startTimer({ stage: 'rank' })
  const found = rank(indexes, {
    text: question.text,
    vector,
    now: backend.now(),
    limit: question.limit,
    floor: question.relevantOnly,
    excludeTexts: question.excludedTexts,
    calibration: embedder.calibration,
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
  })
  stopRankTimer()
  return found.map(row => ({ ...row, source: memorySource(partitions[row.indexNumber]!) }))
}

function memorySource({ session, audience }: RecallPartition): RecalledMemory['source'] {
  if (audience) return 'org'
  return session === null ? 'core' : 'session'
}

/** Merges rankings, best first; of identical texts only the newest row stays. */
export function mergeRankings<Row extends SearchHit>(rows: readonly Row[]): Row[] {
  const newest = new Map<string, Row>()
  for (const row of rows) {
    const text = row.memory.text.normalize('NFC').trim()
    const known = newest.get(text)
    if (!known || known.memory.at < row.memory.at) newest.set(text, row)
  }
  return [...newest.values()].sort((a, b) => b.relevance - a.relevance)
}

type IndexRequest = RecallPartition & {
  embedder: Embedder
  vector: Float32Array
  question: RecallQuestion
}

async function loadVaultIndex(
  { vaultIndexes, nearest, postgres }: RecallBackend,
  { embedder, vector, question, ...partition }: IndexRequest,
): Promise<VaultIndex> {
  const { space, dimension } = embedder
  const vaultIndex = await vaultIndexes.get({ ...partition, space, dimension })
  if (vaultIndex !== 'too-large') return vaultIndex

  const candidates = await nearest.candidates(partition.scope, {
    partition: await visiblePartition(postgres, partition),
    space,
    vector,
    count: candidateCount(question),
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
  })
  const partial = createVaultIndex({ dimension, termsOf })
  partial.put(candidates)
  return partial
}
