import type { Filter } from 'mongodb'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { withWriteTimeout } from '#shared/vault/base/memories.mongo.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'

/** Counting goes by an index: a million documents in under a second. */
const countDeadlineMs = 20_000

/** How many memories a clearing has made invisible and are still there. */
export const countCleared = (
  { memories }: Pick<Mongo, 'memories'>,
  cleared: ClearedRange,
): Promise<number> =>
  memories
    .countDocuments(clearedFilter(cleared), {
      hint: partitionIndex,
      signal: AbortSignal.timeout(countDeadlineMs),
    })
    .catch(refuseWhenUnreachable)

/** How many documents a vault has: of any epoch, tombstones included. */
export const countVault = ({ memories }: Pick<Mongo, 'memories'>, vault: string): Promise<number> =>
  memories
    .countDocuments(
      { vault: { $eq: vault } },
      { hint: partitionIndex, limit: 1, signal: AbortSignal.timeout(countDeadlineMs) },
    )
    .catch(refuseWhenUnreachable)

/**
 * Removes up to `limit` memories that a clearing has made invisible.
 *
 * @returns how many went; fewer than `limit` means that none is left.
 */
export const deleteCleared = (
  mongo: Pick<Mongo, 'memories'>,
  cleared: ClearedRange,
  limit: number,
): Promise<number> => deleteSome(mongo, cleared.vault, clearedFilter(cleared), limit)

/** The same for tombstones: work of a cleared epoch is void by itself, and their ids are free again. */
export const deleteClearedTombstones = (
  mongo: Pick<Mongo, 'memories'>,
  { vault, upTo }: ClearedRange,
  limit: number,
): Promise<number> =>
  deleteSome(mongo, vault, { ...tombstoneFilter(vault), tomb_epoch: { $lte: upTo } }, limit)

/** The same for tombstones set before a moment. */
export const deleteTombstonesBefore = (
  mongo: Pick<Mongo, 'memories'>,
  { vault, before }: { vault: string; before: Date },
  limit: number,
): Promise<number> =>
  deleteSome(mongo, vault, { ...tombstoneFilter(vault), tomb_at: { $lt: before } }, limit)

function clearedFilter({ vault, session, from, upTo }: ClearedRange): Filter<MemoryDocument> {
  const epochs = { $gte: from, $lte: upTo }
  if (session === null) return { vault: { $eq: vault }, epoch: epochs }
  return { vault: { $eq: vault }, session: { $eq: session }, session_epoch: epochs }
}

/** A tombstone has no epoch: that is also how the index of a vault's places finds it. */
const tombstoneFilter = (vault: string): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $exists: false },
})

async function deleteSome(
  { memories }: Pick<Mongo, 'memories'>,
  vault: string,
  filter: Filter<MemoryDocument>,
  limit: number,
): Promise<number> {
  const rows = await memories
    .find(filter, {
      projection: { _id: 1 },
      hint: partitionIndex,
      limit,
      signal: AbortSignal.timeout(deadlineMs),
    })
    .toArray()
    .catch(refuseWhenUnreachable)
  if (rows.length === 0) return 0
  const ids = rows.map(({ _id }) => _id)
  const { deletedCount } = await withWriteTimeout(
    memories.deleteMany({ ...filter, vault: { $eq: vault }, _id: { $in: ids } }, { hint: idIndex }),
  ).catch(refuseWhenUnreachable)
  return deletedCount
}
