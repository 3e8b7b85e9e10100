import type { Filter } from 'mongodb'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import { countDocuments, findDocuments, acknowledged } from '#shared/storage/mongo/commands.ts'

/** Counting reads an index: a million documents take under a second. */
const countDeadlineMs = 20_000

/** How many memories that a clearing made invisible still exist. */
export const countCleared = (
  { memories }: Pick<Mongo, 'memories'>,
  cleared: ClearedRange,
): Promise<number> =>
  countDocuments(memories, clearedFilter(cleared), { hint: partitionIndex }, countDeadlineMs)

/** 1 when a vault has any document, of any epoch or a tombstone; otherwise 0. */
export const countVault = ({ memories }: Pick<Mongo, 'memories'>, vault: string): Promise<number> =>
  countDocuments(
    memories,
    { vault: { $eq: vault } },
    { hint: partitionIndex, limit: 1 },
    countDeadlineMs,
  )

/** Removes up to `limit` memories that a clearing made invisible. @returns how many. */
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

function clearedFilter(cleared: ClearedRange): Filter<MemoryDocument> {
  const { vault, session, from, upTo, vaultEpoch } = cleared
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
  const rows = await findDocuments(memories, filter, {
    projection: { _id: 1 },
    hint: partitionIndex,
    limit,
  })
  if (rows.length === 0) return 0
  const ids = rows.map(({ _id }) => _id)
  const { deletedCount } = await acknowledged(
    memories.deleteMany({ ...filter, vault: { $eq: vault }, _id: { $in: ids } }, { hint: idIndex }),
  )
  return deletedCount
}
