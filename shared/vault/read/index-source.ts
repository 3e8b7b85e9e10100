import type { Memories } from '#shared/vault/base/memories.mongo.ts'
import type { Place } from '#shared/storage/mongo/partition.ts'
import { permittedSets, type Audience } from '#shared/domain/visibility.ts'
import { changesSince, sessionEpochOf } from '#shared/vault/base/changes.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { tagSetsOf } from '#shared/vault/base/tag-sets.postgres.ts'
import type { ImageSource, SpaceRef } from '#shared/search/index/vault-indexes.ts'

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
  const placeOf = (ref: Pick<SpaceRef, 'scope' | 'session' | 'audience'>) =>
    placeSeen(postgres, ref)

  return {
    async load(ref, onBatch) {
      await memories.stream(ref.scope, await placeOf(ref), ref.space, onBatch)
    },

    async changes(ref, since) {
      const { scope, session, space } = ref
      const changes = await changesSince(postgres.query, scope, session, since)
      if (!changes || changes.stored.length > changedMax) return null
      if (changes.stored.length === 0) return { put: [], remove: changes.removed }
      const put = await memories.byIds(scope, await placeOf(ref), space, changes.stored)
      return { put, remove: changes.removed }
    },

    async measure({ scope, session, space, dimension, audience }) {
      const rows = audience
        ? await countSeen(postgres, scope, audience)
        : await memories.count(scope, await placeOf({ scope, session }), space)
      return rows * (dimension + bytesBesideVector)
    },
  }
}

/** How many memories of a shared vault an audience may see. */
async function countSeen(
  { query }: Pick<Postgres, 'query'>,
  scope: SpaceRef['scope'],
  audience: Audience,
): Promise<number> {
  const { permitted } = permittedSets(audience, await tagSetsOf(query, scope))
  return permitted.reduce((sum, { memories }) => sum + memories, 0)
}

/** The part of a vault that an image holds; of a shared one what its audience may see. */
export async function placeSeen(
  { query }: Pick<Postgres, 'query'>,
  { scope, session, audience }: Pick<SpaceRef, 'scope' | 'session' | 'audience'>,
): Promise<Place> {
  const sessionEpoch = await sessionEpochOf(query, scope, session)
  if (!audience || audience.wildcard) return { session, sessionEpoch }
  const { permitted } = permittedSets(audience, await tagSetsOf(query, scope))
  return { session, sessionEpoch, tagSets: permitted.map(({ tagSet }) => tagSet) }
}
