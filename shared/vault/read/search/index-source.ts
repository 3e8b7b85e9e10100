import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Partition } from '#shared/storage/mongo/partition.ts'
import { partitionTagSets, type Visibility } from '#shared/domain/visibility.ts'
import { changesSince, findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import type { Log } from '#shared/core/log.ts'
import { findSavedIndex, saveIndex } from '#shared/vault/read/search/index-snapshots.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { indexableRows } from '#shared/search/index/load-index.ts'
import type { IndexSource, IndexRef } from '#shared/search/index/vault-indexes.ts'

/** Text and other fields of an average row; used only to decide whether a vault fits in memory. */
const rowOverheadBytes = 500

/** After more changes the whole vault is read again instead of the changed ids. */
const incrementalChangesMax = 5_000

/** Loads vault indexes: the documents from MongoDB, the log of changes from Postgres. */
export function createIndexSource({
  memories,
  postgres,
  log,
}: {
  memories: Pick<MemoryStore, 'stream' | 'byIds' | 'count'>
  postgres: Postgres
  log: Log
}): IndexSource {
  const partitionOf = (ref: Pick<IndexRef, 'scope' | 'session' | 'audience'>) =>
    visiblePartition(postgres, ref)

  return {
    async load(ref, onBatch) {
      await memories.stream(ref.scope, await partitionOf(ref), ref.space, rows =>
        onBatch(indexableRows(rows, ref.dimension)),
      )
    },

    async changes(ref, since) {
      const { scope, session, space } = ref
      const changes = await changesSince(postgres.query, scope, session, since)
      if (!changes || changes.stored.length > incrementalChangesMax) return null
      if (changes.stored.length === 0) return { put: [], remove: changes.removed }
      const rows = await memories.byIds(scope, await partitionOf(ref), space, changes.stored)
      const put = indexableRows(rows, ref.dimension)
      // A changed memory is replaced in one step: searches find its old or its new form, never neither.
      // One that was stored without a vector of this space is in it no more.
      const found = new Set(put.map(({ id }) => id))
      const remove = [...changes.removed, ...changes.stored].filter(id => !found.has(id))
      return { put, remove }
    },

    async estimate({ scope, session, space, dimension, audience }) {
      const rows = audience
        ? await countVisible(postgres, scope, audience)
        : await memories.count(scope, await partitionOf({ scope, session }), space)
      return { rows, bytes: rows * (dimension + rowOverheadBytes) }
    },

    async saved(ref) {
      const skip = (error: unknown): undefined => {
        log.warn({ err: error }, 'index.not-restored')
      }
      const saved = isPart(ref) ? undefined : await findSavedIndex(postgres.query, ref).catch(skip)
      return saved && { ...saved, read: () => saved.read().catch(skip) }
    },

    async save(ref, index) {
      if (isPart(ref)) return
      try {
        await saveIndex(postgres, ref, index)
      } catch (error) {
        log.debug({ err: error }, 'index.not-saved')
      }
    },
  }
}

/** Whether its audience may see a part of a shared vault only: such an index is not saved. */
const isPart = ({ audience }: IndexRef): boolean => audience !== undefined && !audience.wildcard

/** How many memories of a shared vault an audience may see. */
async function countVisible(
  { query }: Pick<Postgres, 'query'>,
  scope: IndexRef['scope'],
  audience: Visibility,
): Promise<number> {
  const { permitted } = partitionTagSets(audience, await listTagSets(query, scope))
  return permitted.reduce((sum, { memories }) => sum + memories, 0)
}

/** The part of a vault that an index holds; of a shared vault what its audience may see. */
export async function visiblePartition(
  { query }: Pick<Postgres, 'query'>,
  { scope, session, audience }: Pick<IndexRef, 'scope' | 'session' | 'audience'>,
): Promise<Partition> {
  const sessionEpoch = await findSessionEpoch(query, scope, session)
  if (!audience || audience.wildcard) return { session, sessionEpoch }
  const { permitted } = partitionTagSets(audience, await listTagSets(query, scope))
  return { session, sessionEpoch, tagSets: permitted.map(({ tagSet }) => tagSet) }
}
