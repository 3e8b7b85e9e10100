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
  /** The places to look in: the core vault is null. */
  sessions: (string | null)[]
  embeddings: string | undefined
  tiers: readonly Tier[] | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Leave out whatever is not relevant, even if nothing remains. */
  relevantOnly: boolean
  /** What need not be found, since whoever asks has it. */
  excludedTexts?: TextExclusion | undefined
}

/** What was found, and whose memory it is. */
export type RecalledMemory = SearchHit & { source: 'core' | 'session' | 'org' }

type RecallBackend = {
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  postgres: Postgres
  now: () => number
}

/** Candidates asked of the database where no image is held: enough to rank anew by words and time. */
const candidateCount = ({ limit, excludedTexts }: RecallQuestion): number =>
  Math.min(2_000, Math.max(200, limit * 4) + (excludedTexts?.size ?? 0))

/**
 * Finds what a vault remembers about a text, best first; for a member of an organization also what they
 * may see of its shared memory, in one ranking. Vaults are ranked on their images, in this process's
 * memory; one too large for that is searched in the database and its candidates are ranked the same way.
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
  const isOne = usual.space === embedder.space
  const rankings = await Promise.all([
    rankIn(backend, embedder, isOne ? [...own, shared] : own, question),
    ...(isOne ? [] : [rankIn(backend, usual, [shared], question)]),
    ...former.map(one => undefinedIfUnavailable(rankIn(backend, one, [shared], question))),
  ])
  if (rankings.length === 1) return rankings[0]
  return mergeRankings(rankings.flatMap(found => found ?? [])).slice(0, question.limit)
}

/** A part of a vault to look in; of a shared one, who looks. */
type RecallPartition = Pick<IndexRef, 'scope' | 'session' | 'audience'>

async function rankIn(
  backend: RecallBackend,
  embedder: Embedder,
  partitions: readonly RecallPartition[],
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const vector = await backend.queryVectors.embed(embedder, question.text)
  const stopLoadTimer = recallSeconds.startTimer({ stage: 'image' })
  const images = await Promise.all(
    partitions.map(partition =>
      loadVaultIndex(backend, { ...partition, embedder, vector, question }),
    ),
  )
  stopLoadTimer()
  const stopRankTimer = recallSeconds.startTimer({ stage: 'rank' })
  const found = rank(images, {
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

/** Several rankings as one, best first; of identical texts the newest stands for all. */
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
