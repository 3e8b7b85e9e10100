import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Tier } from '#shared/domain/memory.ts'
import type { TextExclusion } from '#shared/vault/read/search/already-in-conversation.ts'
import { visibilityOf } from '#shared/domain/visibility.ts'
import { toSharedVaultScope } from '#shared/domain/member-scope.ts'
import { boundsAsOf, momentOf } from '#shared/vault/read/search/as-of.ts'
import { undefinedIfUnavailable, openSharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { forgetWrongEmbedder } from '#shared/vault/base/forget-wrong-embedder.ts'
import { searchableIndex, type IndexBackend } from '#shared/vault/read/search/searchable-index.ts'
import type { IndexRef } from '#shared/search/index/vault-indexes.ts'
import { rankInTurns, type EmbeddedQuestion, type SearchHit } from '#shared/search/ranking/rank.ts'
import { selectQuestions, type Question } from '#shared/search/query/select-questions.ts'
import { recallSeconds } from '#shared/core/metrics.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import { embeddingTimeoutMs, withEmbeddingTimeout } from '#shared/models/embedding-deadline.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'

export type RecallQuestion = {
  text: string
  /** Rank for the text as a whole, not for its sentences. */
  undivided?: boolean | undefined
  limit: number
  /** Sessions to search; null is the core vault. */
  sessions: (string | null)[]
  embeddings: string | undefined
  tiers: readonly Tier[] | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Lowest score, 0 to 1. */
  minScore?: number | undefined
  /** Rows without such metadata are left out. */
  metadata?: MetadataFilter | undefined
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
  /** Called when the text names a time that is over and of which nothing is remembered. */
  onEmptyTime?: (() => void) | undefined
}

/** What a request asks of memories beside having to do with its words. */
export type RecallFilters = Pick<
  RecallQuestion,
  'tiers' | 'importance' | 'minScore' | 'metadata' | 'asOf'
>

/** A row, and the part of the vault it comes from. */
export type RecalledMemory = SearchHit & { source: 'core' | 'session' | 'org' }

type RecallBackend = IndexBackend & {
  embedders: Embedders
  queryVectors: QueryVectorCache
}

/**
 * Finds the memories of a vault that are relevant to a text, best first; for a member of an organization
 * also what they may see of its shared memory, in one ranking. Vaults are ranked by their indexes in this
 * process's memory; one that is too large, or still being loaded, is searched in the database and its
 * candidates are ranked the same way.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable` when the memory
 *   store is out of reach.
 */
export async function recall(
  backend: RecallBackend,
  { scope, memberScope }: Pick<Caller, 'scope' | 'memberScope'>,
  question: RecallQuestion,
): Promise<RecalledMemory[]> {
  const until = performance.now() + embeddingTimeoutMs
  const model = question.embeddings ?? backend.embedders.defaultModel
  const embedder = await withEmbeddingTimeout(backend.embedders.get(model), model)
  const timed = { ...question, until }
  const own = question.sessions.map((session): RecallPartition => ({ scope, session }))
  if (!memberScope) return rankIn(backend, embedder, own, timed)

  const shared = {
    scope: toSharedVaultScope(memberScope),
    session: null,
    audience: visibilityOf(memberScope),
  }
  const [usual, ...former] = await openSharedEmbedders(backend, memberScope.orgSpace)
  const isSameSpace = usual.space === embedder.space
  const rankings = await Promise.all([
    rankIn(backend, embedder, isSameSpace ? [...own, shared] : own, timed),
    ...(isSameSpace ? [] : [rankIn(backend, usual, [shared], timed)]),
    ...former.map(one => undefinedIfUnavailable(rankIn(backend, one, [shared], timed))),
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
  question: RecallQuestion & { until: number },
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
    ...(!question.relevantOnly && { query: question.text }),
    excludeTexts: question.excludedTexts,
    calibration: embedder.calibration,
    onEmptyTime: question.onEmptyTime,
    onMatchCount: question.onMatchCount,
    ...(question.tiers && { tiers: question.tiers }),
    ...(question.importance !== undefined && { importance: question.importance }),
    ...(question.metadata && { metadata: question.metadata }),
    ...boundsAsOf(question.asOf),
    ...question.within,
  })
  stopRankTimer()
  const { minScore = 0 } = question
  return found
    .filter(({ score }) => score >= minScore)
    .map(row => ({ ...row, source: memorySource(partitions[row.indexNumber]!) }))
}

/**
 * The parts of the text to search for, the most telling one first; names have no vector. Without any,
 * the text as it is, unless only relevant rows are wanted.
 */
async function embedQuestions(
  { queryVectors }: RecallBackend,
  embedder: Embedder,
  { text, undivided, relevantOnly }: RecallQuestion,
): Promise<EmbeddedQuestion[]> {
  const selected = undivided ? [{ text, kind: 'whole' } as const] : selectQuestions(text)
  const questions: readonly Question[] =
    selected.length > 0 || relevantOnly ? selected : [{ text, kind: 'whole' }]
  const embedded = questions.filter(({ kind }) => kind !== 'name')
  const vectors = await queryVectors.embedAll(
    embedder,
    embedded.map(question => question.text),
  )
  return questions.map(question => ({
    ...question,
    vector: vectors[embedded.indexOf(question)] ?? null,
  }))
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
