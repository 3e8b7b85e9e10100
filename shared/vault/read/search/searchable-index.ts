import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import type { Partition } from '#shared/storage/mongo/partition.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { indexableRows, putInSlices } from '#shared/search/index/load-index.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import type { IndexRef, VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { askedLabels } from '#shared/search/query/attributes.ts'
import { parseSearchQuery } from '#shared/search/query/parse-query.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { boundsAsOf, momentOf } from '#shared/vault/read/search/as-of.ts'
import { visiblePartition } from '#shared/vault/read/search/index-source.ts'
import {
  labelledNotes,
  missingWords,
  type ExactWord,
} from '#shared/vault/read/search/exact-words.ts'
import type {
  MemoryFilter,
  NearestQuestion,
  NearestSearch,
} from '#shared/vault/read/search/nearest.ts'
import { memoriesWithWords } from '#shared/vault/read/search/words.mongo.ts'

/** Longest that a question waits for a vault to be loaded, below the 60 s of most proxies. */
const loadWaitMs = 50_000

export type IndexBackend = {
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  postgres: Postgres
  mongo: Pick<Mongo, 'memories'>
  now: () => number
}

/** A search. */
type SearchedText = MemoryFilter & {
  text: string
  limit: number
  /** Event times in [from, to), epoch ms: others are left out. */
  within?: { from: number; to: number } | undefined
  /** Epoch ms: later memories are left out. */
  asOf?: number | undefined
  /** Rows that will be left out of the ranking. */
  excludedTexts?: { size: number } | undefined
}

type IndexRequest = Pick<IndexRef, 'scope' | 'session' | 'audience'> & {
  embedder: Embedder
  /** The vectors of the parts of the text, the most specific one first; at least one. */
  vectors: readonly Float32Array[]
  question: SearchedText
}

/** Candidates asked of the database for a vault without an index in memory: enough to rank by words and time. */
const candidateCount = ({ limit, excludedTexts }: SearchedText): number =>
  Math.min(2_000, Math.max(200, limit * 4) + (excludedTexts?.size ?? 0))

/** Parts of a text whose neighbours are asked for. */
const vectorsMax = 3

/** Candidates of each span of time that a question names, at most so many spans. */
const spanCandidates = 100
const spansMax = 4

/**
 * An index to rank a question in: that of the whole partition in memory, or one of the candidates that the
 * database finds, where the partition is too large. While a large partition is being loaded its search index
 * answers; without one the question waits for the load, 50 s at most.
 *
 * @throws Refusal `unavailable` after that; the load goes on.
 */
export async function searchableIndex(
  backend: IndexBackend,
  request: IndexRequest,
): Promise<VaultIndex> {
  const { embedder, vectors: _, question: __, ...partition } = request
  const ref = { ...partition, space: embedder.space, dimension: embedder.dimension }
  return wholeOrPartialIndex(backend, ref, way => candidateIndex(backend, request, way))
}

/**
 * The index of a whole partition, or one of candidates where it is too large or being loaded.
 *
 * @param partial an index of the candidates, found by the search index alone (`indexed`; null where it cannot answer)
 *   or by any means
 * @throws Refusal `unavailable` where the load takes longer than `waitMs`.
 */
export async function wholeOrPartialIndex(
  { vaultIndexes, nearest }: Pick<IndexBackend, 'vaultIndexes' | 'nearest'>,
  ref: IndexRef,
  partial: (way: 'indexed' | 'candidates') => Promise<VaultIndex | null>,
  waitMs = loadWaitMs,
): Promise<VaultIndex> {
  const whole = () => withTimeout(vaultIndexes.get(ref), waitMs, refuseWhileLoading)
  const found = nearest.hasIndex() ? await vaultIndexes.getUnlessLong(ref) : await whole()
  if (found === 'loading') {
    const index = await partial('indexed').catch(nullIfUnavailable)
    if (index) return index
  }
  const vaultIndex = found === 'loading' ? await whole() : found
  if (vaultIndex !== 'too-large') return vaultIndex
  return (await partial('candidates'))!
}

function refuseWhileLoading(): never {
  throw refusal('unavailable', 'vaultLoading')
}

/** The load goes on, and answers a little later. */
function nullIfUnavailable(error: unknown): null {
  if (error instanceof Refusal && error.reason === 'unavailable') return null
  throw error
}

/** What finds the notes that answer a question about the person who asks: "Name: Ada". */
function askedNotes(text: string): ExactWord[] {
  const labels = new Set(selectQuestions(text).flatMap(one => [...(askedLabels(one.text) ?? [])]))
  return labels.size > 0 ? [labelledNotes(labels)] : []
}

/**
 * An index of what the database finds: by meaning, in the times that the question names, by its exact words and
 * by the labels of notes that it asks for.
 *
 * @returns null where `indexed` cannot answer.
 */
async function candidateIndex(
  { nearest, postgres, mongo, now }: IndexBackend,
  request: IndexRequest,
  way: 'indexed' | 'candidates',
): Promise<VaultIndex | null> {
  const { scope, embedder, vectors, question } = request
  const { space, dimension } = embedder
  const partition: Partition = await visiblePartition(postgres, request)
  const asked: NearestQuestion = {
    partition,
    space,
    vector: vectors[0]!,
    count: candidateCount(question),
    tiers: question.tiers,
    importance: question.importance,
    condition: question.condition,
    ...boundsAsOf(question.asOf),
    ...question.within,
  }
  const { to: end = Infinity } = asked
  const { times } = parseSearchQuery(question.text, momentOf({ now }, question.asOf))
  const found = await Promise.all(
    vectors.slice(0, vectorsMax).map(vector => nearest[way](scope, { ...asked, vector })),
  )
  if (found.includes(null)) return null
  const byMeaning = found.flatMap(rows => rows ?? [])
  // After the first answer: a database that has too much to do is asked nothing more.
  const [byWords, byLabel, ...byTime] = await Promise.all([
    memoriesWithWords(mongo, scope, asked, missingWords(question.text, byMeaning)),
    memoriesWithWords(mongo, scope, asked, askedNotes(question.text)),
    ...times
      .filter(({ from }) => from < end)
      .slice(0, spansMax)
      .map(({ from, to }) =>
        nearest[way](scope, { ...asked, from, to: Math.min(to, end), count: spanCandidates }),
      ),
  ])
  const rows: EmbeddedMemory[] = [byMeaning, byWords, byLabel, ...byTime].flatMap(
    part => part ?? [],
  )
  const index = createVaultIndex({ dimension, termsOf })
  await putInSlices(index, indexableRows(rows, dimension))
  return index
}
