import { MongoServerError, type Document } from 'mongodb'
import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  toBinaryVector,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { partitionFilter } from '#shared/storage/mongo/partition.ts'
import { questionFilter, selectNearest } from '#shared/vault/read/nearest-ranking.mongo.ts'
import { isSearchable, searchIndexName } from '#shared/storage/mongo/search-indexes.ts'
import type {
  ScanFallbackListener,
  NearestSearch,
  NearestQuestion,
} from '#shared/vault/read/nearest.ts'

/** How many neighbours the index considers: what its documentation advises, and its upper bound. */
const candidatesPerRow = 20
const candidatesMax = 10_000

/** Rows asked for beyond the wanted ones: some may have been deleted since the index saw them. */
const spareRows = (count: number): number => 20 + Math.ceil(count / 10)

/**
 * Searches by `$vectorSearch`. The index may be missing, being built or of another definition, or the
 * deployment may support none: whenever it cannot answer, `scan` does, and `onScan` is called with the
 * reason, once until the index answers again.
 *
 * The index is updated some time after the documents: deleted rows are left out here, added ones are not
 * found yet.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function createNearestIndexSearch(
  mongo: Pick<Mongo, 'memories'>,
  scan: NearestSearch,
  onScan: ScanFallbackListener,
): NearestSearch {
  const reportedReasons = new Map<string, string>()

  return {
    async candidates(scope, question) {
      const { space, partition } = question
      // The index refuses an empty list.
      if (partition.tagSets?.length === 0) return []
      const answer = await searchByIndex(mongo, scope, question)
      if (typeof answer !== 'string') {
        reportedReasons.delete(space)
        return answer
      }
      if (reportedReasons.get(space) !== answer) {
        reportedReasons.set(space, answer)
        onScan({ space, reason: answer })
      }
      return scan.candidates(scope, question)
    },
  }
}

/** The rows, or the reason why the index cannot answer. */
async function searchByIndex(
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  question: NearestQuestion,
): Promise<EmbeddedMemory[] | string> {
  const { space } = question
  const signal = AbortSignal.timeout(deadlineMs)
  try {
    const rows = await mongo.memories
      .aggregate<MemoryDocument>(vectorSearchPipeline(scope, question), { signal })
      .toArray()
    // A search on a missing index is no error: it returns no rows.
    if (rows.length === 0 && !(await isSearchable(mongo, space, signal))) {
      return `${searchIndexName(space)} does not exist, or cannot be queried yet`
    }
    return selectNearest(
      rows.map(row => embeddedMemoryFromDocument(row, space)),
      question,
    )
  } catch (error) {
    // After the deadline the driver fails with many errors, none of which names the deadline.
    if (signal.aborted) return refuseWhenUnreachable(signal.reason)
    // The search process reports every problem with the same code, 8.
    if (error instanceof MongoServerError) return error.message
    return refuseWhenUnreachable(error)
  }
}

/** The filter is applied again to the documents, which are newer than the index. */
function vectorSearchPipeline(scope: VaultScope, question: NearestQuestion): Document[] {
  const { space, partition, vector, count } = question
  const path = `vectors.${space}`
  const filter = { ...partitionFilter(scope, partition, space), ...questionFilter(question) }
  const { [path]: _existence, ...indexed } = filter as Document
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
