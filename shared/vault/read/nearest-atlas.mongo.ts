import { MongoServerError, type Document } from 'mongodb'
import type { EmbeddedMemory, VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import {
  embeddedMemoryOf,
  projectionOf,
  vectorOf,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { seen } from '#shared/storage/mongo/partition.ts'
import { asked, nearestOf } from '#shared/vault/read/nearest-query.mongo.ts'
import { isSearchable, searchIndexName } from '#shared/storage/mongo/search-indexes.ts'
import type { HearScan, Nearest, NearestQuestion } from '#shared/vault/read/nearest.ts'

/** How many neighbours the index considers: what its documentation advises, and its upper bound. */
const candidatesPerRow = 20
const candidatesMax = 10_000

/** Rows asked for beyond the wanted ones: some may have been deleted since the index saw them. */
const spareOf = (count: number): number => 20 + Math.ceil(count / 10)

/**
 * Searches by `$vectorSearch`. The index may be missing, being built or of another definition, and
 * the deployment may turn out to have none: whenever it cannot answer, `scan` does, and `onScan`
 * hears why, once until the index answers again.
 *
 * An index trails what is stored: rows deleted meanwhile are left out here, rows added meanwhile are
 * not found yet.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export function createNearestSearch(
  mongo: Pick<Mongo, 'memories'>,
  scan: Nearest,
  onScan: HearScan,
): Nearest {
  const told = new Map<string, string>()

  return {
    async candidates(scope, question) {
      const { space, place } = question
      // The index refuses an empty list.
      if (place.tagSets?.length === 0) return []
      const answer = await search(mongo, scope, question)
      if (typeof answer !== 'string') {
        told.delete(space)
        return answer
      }
      if (told.get(space) !== answer) {
        told.set(space, answer)
        onScan({ space, reason: answer })
      }
      return scan.candidates(scope, question)
    },
  }
}

/** The rows, or the reason why the index cannot tell. */
async function search(
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  question: NearestQuestion,
): Promise<EmbeddedMemory[] | string> {
  const { space } = question
  const signal = AbortSignal.timeout(deadlineMs)
  try {
    const rows = await mongo.memories
      .aggregate<MemoryDocument>(pipelineOf(scope, question), { signal })
      .toArray()
    // An index that does not exist is no error: it answers with nothing.
    if (rows.length === 0 && !(await isSearchable(mongo, space, signal))) {
      return `${searchIndexName(space)} does not exist, or cannot be queried yet`
    }
    return nearestOf(
      rows.map(row => embeddedMemoryOf(row, space)),
      question,
    )
  } catch (error) {
    // After the deadline the driver fails in many ways, and none of them says why.
    if (signal.aborted) return refuseWhenUnreachable(signal.reason)
    // Whatever the search process objects to has the same code, 8: there is nothing to tell apart.
    if (error instanceof MongoServerError) return error.message
    return refuseWhenUnreachable(error)
  }
}

/** What may be seen is matched again on the documents themselves, which are newer than the index. */
function pipelineOf(scope: VaultScope, question: NearestQuestion): Document[] {
  const { space, place, vector, count } = question
  const path = `vectors.${space}`
  const filter = { ...seen(scope, place, space), ...asked(question) }
  const { [path]: _existence, ...indexed } = filter as Document
  const limit = count + spareOf(count)
  return [
    {
      $vectorSearch: {
        index: searchIndexName(space),
        path,
        queryVector: vectorOf(vector),
        filter: indexed,
        numCandidates: Math.min(candidatesMax, limit * candidatesPerRow),
        limit,
      },
    },
    { $match: filter },
    { $project: projectionOf(space) },
  ]
}
