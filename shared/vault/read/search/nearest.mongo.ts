import { MongoServerError, type Document } from 'mongodb'
import { memoryStoreUnreachable, unavailable } from '#shared/core/refusals.ts'
import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { metadataName, testsOf } from '#shared/domain/condition.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  toBinaryVector,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { isIndexed } from '#shared/storage/mongo/condition-filter.ts'
import { partitionFilter } from '#shared/storage/mongo/partition.ts'
import {
  questionFilter,
  selectNearest,
  createNearestScan,
} from '#shared/vault/read/search/nearest-scan.mongo.ts'
import { isSearchable, searchIndexName } from '#shared/storage/mongo/search-indexes.ts'
import { isSearchMissing, isUnreachable } from '#shared/storage/mongo/server-errors.ts'
import type {
  NearestListeners,
  NearestQuestion,
  NearestSearch,
  RecentMemories,
} from '#shared/vault/read/search/nearest.ts'

/** How many neighbours the index considers: what its documentation advises, and its upper bound. */
const candidatesPerRow = 20
const candidatesMax = 10_000

/** Rows asked for beyond the wanted ones: some may have been deleted since the index saw them. */
const spareRows = (count: number): number => 20 + Math.ceil(count / 10)

/** "No vector search" is asked again after this. */
const missingTtlMs = 600_000

/** The search process has too many queries. */
const overloadedCode = 489
const overloadedMessage =
  /overload|quer(?:y|ies) (?:was|were)? ?rejected|too many (?:queries|requests)/i

/** Without the right to search, every query fails alike. */
const unauthorizedCode = 13

/**
 * Searches by `$vectorSearch`. Where no index can answer (missing, being built, of another definition), `scan`
 * does, and `onScan` is called with the reason, once until the index answers again. An index that exists and
 * fails is no reason to scan.
 *
 * The index is updated some time after the documents: deleted rows are left out here, and rows of the last
 * minutes are taken from the change log.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach or has too many searches.
 */
function createNearestIndexSearch(
  mongo: Pick<Mongo, 'memories'>,
  scan: NearestSearch,
  options: {
    listeners: NearestListeners
    /** The deployment has no vector search. */
    isMissing: boolean
    /** Memories that were stored in the last minutes, which the index may not have yet. */
    recent: RecentMemories
    now?: () => number
  },
): NearestSearch {
  const { listeners, isMissing, recent, now = Date.now } = options
  const reportedReasons = new Map<string, string>()
  let missingUntil = isMissing ? now() + missingTtlMs : -Infinity

  const reportMissing = (error: unknown): void => {
    missingUntil = now() + missingTtlMs
    listeners.onMissing?.(error)
  }
  const reportScan = ({ space, vector }: NearestQuestion, reason: string): void => {
    if (reportedReasons.get(space) === reason) return
    reportedReasons.set(space, reason)
    listeners.onScan?.({ space, dimension: vector.length, reason })
  }

  const search: NearestSearch = {
    hasIndex: () => now() >= missingUntil,

    async indexed(scope, question) {
      const { space, partition } = question
      // The index refuses an empty list.
      if (partition.tagSets?.length === 0) return []
      if (now() < missingUntil) return null
      const [answer, newer] = await Promise.all([
        searchByIndex(mongo, scope, question),
        recent(scope, question),
      ])
      if (answer.outcome === 'missing') reportMissing(answer.error)
      if (answer.outcome === 'unusable') reportScan(question, answer.reason)
      if (answer.outcome !== 'found') return null
      reportedReasons.delete(space)
      // Too much is newer than the index may be.
      if (newer === 'too-many') return null
      const rows = new Map([...answer.rows, ...newer].map(row => [row.id, row]))
      return selectNearest([...rows.values()], question)
    },

    async candidates(scope, question) {
      return (await search.indexed(scope, question)) ?? scan.candidates(scope, question)
    },
  }
  return search
}

type IndexAnswer =
  | { outcome: 'found'; rows: EmbeddedMemory[] }
  /** This index cannot answer. */
  | { outcome: 'unusable'; reason: string }
  /** The deployment has no vector search. */
  | { outcome: 'missing'; error: unknown }

async function searchByIndex(
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  question: NearestQuestion,
): Promise<IndexAnswer> {
  const { space, vector } = question
  const signal = deadline(mongo.memories)
  const tests = question.condition ? testsOf(question.condition) : []
  const filtersMetadata = tests.some(test => metadataName(test) !== undefined)
  if (!tests.every(isIndexed))
    return { outcome: 'unusable', reason: 'No index has all fields of the filter' }
  const canAnswer = () =>
    isSearchable(mongo, { space, dimension: vector.length, filtersMetadata }, signal)
  try {
    const rows = await mongo.memories
      .aggregate<MemoryDocument>(vectorSearchPipeline(scope, question), { signal })
      .toArray()
    // A search on a missing index is no error: it returns no rows.
    if (rows.length === 0 && !(await canAnswer())) {
      const reason = `${searchIndexName(space)} does not exist, or cannot be queried yet`
      return { outcome: 'unusable', reason }
    }
    return { outcome: 'found', rows: rows.map(row => embeddedMemoryFromDocument(row, space)) }
  } catch (error) {
    // After the deadline the driver fails with many errors, none of which names the deadline.
    if (signal.aborted) return refuseWhenUnreachable(signal.reason)
    return describeFailure(error, canAnswer)
  }
}

/** @throws Refusal `unavailable` for what passes by itself. */
async function describeFailure(
  failure: unknown,
  canAnswer: () => Promise<boolean>,
): Promise<IndexAnswer> {
  if (isSearchMissing(failure)) return { outcome: 'missing', error: failure }
  if (!(failure instanceof MongoServerError)) return refuseWhenUnreachable(failure)
  if (failure.code === overloadedCode || overloadedMessage.test(failure.message)) {
    throw unavailable('The memory store has too many searches at the moment', failure)
  }
  if (isUnreachable(failure)) return refuseWhenUnreachable(failure)
  // The search process reports every problem with the same code, 8: only a query that the index cannot
  // answer is answered by a scan, which costs most when the deployment is in trouble already.
  const isFault = failure.code !== unauthorizedCode && (await canAnswer().catch(() => false))
  if (isFault) throw memoryStoreUnreachable(failure)
  return { outcome: 'unusable', reason: failure.message }
}

/** The filter is applied again to the documents, which are newer than the index. */
function vectorSearchPipeline(scope: VaultScope, question: NearestQuestion): Document[] {
  const { space, partition, vector, count } = question
  const path = `vectors.${space}`
  const filter = { ...partitionFilter(scope, partition, space), ...questionFilter(question) }
  const { [path]: _existence, feedback: _told, ...indexed } = filter as Document
  const limit = count + spareRows(count)
  return [
    {
      $vectorSearch: {
        index: searchIndexName(space),
        path,
        queryVector: toBinaryVector(vector),
        filter: indexed,
        numCandidates: Math.min(candidatesMax, limit * candidatesPerRow),
        limit,
      },
    },
    { $match: filter },
    { $project: embeddedMemoryProjection(space) },
  ]
}

/**
 * The search of this deployment: by index where MongoDB has vector search, else by scanning. A deployment that
 * has none is asked again later.
 */
export async function chooseNearestSearch(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  {
    recent,
    now = Date.now,
    ...listeners
  }: NearestListeners & { recent: RecentMemories; now?: () => number },
): Promise<NearestSearch> {
  const scan = createNearestScan(mongo)
  const isMissing = !(await mongo.hasVectorSearch())
  if (isMissing) listeners.onMissing?.(undefined)
  return createNearestIndexSearch(mongo, scan, { listeners, isMissing, recent, now })
}
