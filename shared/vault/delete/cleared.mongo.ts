import type { Filter } from 'mongodb'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { inTime } from '#shared/vault/base/memories.mongo.ts'
import { byId, byPlace } from '#shared/storage/mongo/indexes.ts'
import type { Cleared } from '#shared/domain/job-payloads.ts'

/** Counting goes by an index: a million documents in under a second. */
const countDeadlineMs = 20_000

/** How many memories a clearing has made invisible and are still there. */
export const countCleared = (
  { memories }: Pick<Mongo, 'memories'>,
  cleared: Cleared,
): Promise<number> =>
  memories
    .countDocuments(clearedBy(cleared), {
      hint: byPlace,
      signal: AbortSignal.timeout(countDeadlineMs),
    })
    .catch(refuseWhenUnreachable)

/** How many documents a vault has: of any epoch, tombstones included. */
export const countVault = ({ memories }: Pick<Mongo, 'memories'>, vault: string): Promise<number> =>
  memories
    .countDocuments(
      { vault: { $eq: vault } },
      { hint: byPlace, limit: 1, signal: AbortSignal.timeout(countDeadlineMs) },
    )
    .catch(refuseWhenUnreachable)

/**
 * Removes up to `limit` memories that a clearing has made invisible.
 *
 * @returns how many went; fewer than `limit` means that none is left.
 */
export const deleteCleared = (
  mongo: Pick<Mongo, 'memories'>,
  cleared: Cleared,
  limit: number,
): Promise<number> => deleteSome(mongo, cleared.vault, clearedBy(cleared), limit)

/** The same for tombstones: work of a cleared epoch is void by itself, and their ids are free again. */
export const deleteClearedGraves = (
  mongo: Pick<Mongo, 'memories'>,
  { vault, upTo }: Cleared,
  limit: number,
): Promise<number> =>
  deleteSome(mongo, vault, { ...gravesOf(vault), tomb_epoch: { $lte: upTo } }, limit)

/** The same for tombstones set before a moment. */
export const deleteGravesBefore = (
  mongo: Pick<Mongo, 'memories'>,
  { vault, before }: { vault: string; before: Date },
  limit: number,
): Promise<number> =>
  deleteSome(mongo, vault, { ...gravesOf(vault), tomb_at: { $lt: before } }, limit)

function clearedBy({ vault, session, from, upTo }: Cleared): Filter<MemoryDocument> {
  const epochs = { $gte: from, $lte: upTo }
  if (session === null) return { vault: { $eq: vault }, epoch: epochs }
  return { vault: { $eq: vault }, session: { $eq: session }, session_epoch: epochs }
}

/** A tombstone has no epoch: that is also how the index of a vault's places finds it. */
const gravesOf = (vault: string): Filter<MemoryDocument> => ({
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
      hint: byPlace,
      limit,
      signal: AbortSignal.timeout(deadlineMs),
    })
    .toArray()
    .catch(refuseWhenUnreachable)
  if (rows.length === 0) return 0
  const ids = rows.map(({ _id }) => _id)
  const { deletedCount } = await inTime(
    memories.deleteMany({ ...filter, vault: { $eq: vault }, _id: { $in: ids } }, { hint: byId }),
  ).catch(refuseWhenUnreachable)
  return deletedCount
}
