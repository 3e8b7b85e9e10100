import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { findRecentChanges } from '#shared/vault/base/vault-changes.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { questionFilter } from '#shared/vault/read/search/nearest-scan.mongo.ts'
import type { RecentMemories } from '#shared/vault/read/search/nearest.ts'

/** A search index is behind its collection by seconds; while much is written, by minutes. */
const searchIndexLagMinutes = 15

/** Reading 2,000 rows of 1,536 numbers takes about 0.15 s. */
const recentMax = 2_000

/**
 * Reads what the change log knows to be newer than a search index may be, so that a memory can be found as soon
 * as it is stored.
 */
export function createRecentMemories({
  memories,
  postgres,
}: {
  memories: MemoryStore
  postgres: Postgres
}): RecentMemories {
  return async (scope, question) => {
    const { partition, space } = question
    const ids = await findRecentChanges(postgres.query, scope, partition.session, {
      minutes: searchIndexLagMinutes,
      max: recentMax + 1,
    })
    if (ids.length > recentMax) return 'too-many'
    if (ids.length === 0) return []
    return memories.byIds(scope, partition, space, ids, questionFilter(question))
  }
}
