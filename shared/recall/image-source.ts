import type { Memories } from '#shared/mongo/memories.ts'
import { changesSince, sessionEpochOf } from '#shared/postgres/changes.ts'
import type { Postgres } from '#shared/postgres/connect.ts'
import type { ImageSource } from '#shared/recall/images.ts'

/** Bookkeeping and text of an average row; only to decide whether a vault fits at all. */
const bytesBesideVector = 500

/** Beyond this a vault is read anew rather than by ids. */
const changedMax = 5_000

/** Where images come from: documents from MongoDB, the log of what changed from Postgres. */
export function createImageSource({
  memories,
  postgres,
}: {
  memories: Memories
  postgres: Postgres
}): ImageSource {
  return {
    async load({ scope, session, space }, onBatch) {
      const sessionEpoch = await sessionEpochOf(postgres.query, scope, session)
      await memories.stream(scope, { session, sessionEpoch }, space, onBatch)
    },

    async changes({ scope, session, space }, since) {
      const changes = await changesSince(postgres.query, scope, session, since)
      if (!changes || changes.stored.length > changedMax) return null
      if (changes.stored.length === 0) return { put: [], remove: changes.removed }
      const sessionEpoch = await sessionEpochOf(postgres.query, scope, session)
      const place = { session, sessionEpoch }
      const put = await memories.byIds(scope, place, space, changes.stored)
      return { put, remove: changes.removed }
    },

    async measure({ scope, session, space, dimension }) {
      const sessionEpoch = await sessionEpochOf(postgres.query, scope, session)
      const rows = await memories.count(scope, { session, sessionEpoch }, space)
      return rows * (dimension + bytesBesideVector)
    },
  }
}
