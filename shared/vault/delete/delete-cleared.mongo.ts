import type { Filter } from 'mongodb'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { withWriteTimeout } from '#shared/vault/base/memories.mongo.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'

/** Counting reads an index: a million documents take under a second. */
const countDeadlineMs = 20_000

/** How many memories that a clearing made invisible still exist. */
export const countCleared = (
  { memories }: Pick<Mongo, 'memories'>,
  cleared: ClearedRange,
): Promise<number> =>
  memories
    .countDocuments(clearedFilter(cleared), {
      hint: partitionIndex,
      signal: deadline(memories, countDeadlineMs),
    })
    .catch(refuseWhenUnreachable)

/** 1 when a vault has any document, of any epoch or a tombstone; otherwise 0. */
export const countVault = ({ memories }: Pick<Mongo, 'memories'>, vault: string): Promise<number> =>
  memories
    .countDocuments(
      { vault: { $eq: vault } },
      { hint: partitionIndex, limit: 1, signal: deadline(memories, countDeadlineMs) },
    )
    .catch(refuseWhenUnreachable)

/**
 * Removes up to `limit` memories that a clearing made invisible.
 *
 * @returns how many were removed; fewer than `limit` means that none is left
 */
export const deleteCleared = (
  mongo: Pick<Mongo, 'memories'>,
  cleared: ClearedRange,
  limit: number,
): Promise<number> => deleteSome(mongo, cleared.vault, clearedFilter(cleared), limit)

/** Removes up to `limit` tombstones of cleared epochs: no work of these epochs can write any more. */
export const deleteClearedTombstones = (
  mongo: Pick<Mongo, 'memories'>,
  { vault, upTo }: ClearedRange,
  limit: number,
): Promise<number> =>
  deleteSome(mongo, vault, { ...tombstoneFilter(vault), tomb_epoch: { $lte: upTo } }, limit)

/** Removes up to `limit` tombstones that were set before `before`. */
export const deleteTombstonesBefore = (
  mongo: Pick<Mongo, 'memories'>,
  { vault, before }: { vault: string; before: Date },
  limit: number,
): Promise<number> =>
  deleteSome(mongo, vault, { ...tombstoneFilter(vault), tomb_at: { $lt: before } }, limit)

function clearedFilter({
  vault,
  session,
  from,
  upTo,
  vaultEpoch,
}: ClearedRange): Filter<MemoryDocument> {
  const epochs = { $gte: from, $lte: upTo }
  if (session === null) return { vault: { $eq: vault }, epoch: epochs }
  return {
    vault: { $eq: vault },
    epoch: { $lte: vaultEpoch },
    session: { $eq: session },
    session_epoch: epochs,
  }
}

/** A tombstone has no epoch, so the partition index finds it. */
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
      signal: deadline(memories),
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
