import { MaxKey, MinKey } from 'mongodb'
import { dayMs, retentionStepMs } from '#shared/domain/expiry.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type MemoryCollection } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { expiryIndex, idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import {
  acknowledged,
  countDocuments,
  findDocuments,
  findDocument,
  epochFilter,
  idsFilter,
  withWriteTimeout,
} from '#shared/storage/mongo/commands.ts'

/** Ids of memories of a vault, sessions included, that have expired at a moment, earliest expiry first. */
export async function findExpiredIds(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  at: number,
  max: number,
): Promise<string[]> {
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), expires_at: { $lte: new Date(at) } },
    {
      projection: { _id: 1 },
      sort: { expires_at: 1 },
      hint: expiryIndex,
      limit: max,
    },
  )
  return rows.map(({ _id }) => _id)
}

/** The earliest expiry in a vault, in epoch milliseconds; null when no memory expires. */
export async function findNextExpiry(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
): Promise<number | null> {
  const row = await findDocument(
    memories,
    { ...epochFilter(scope), expires_at: { $exists: true } },
    {
      projection: { expires_at: 1 },
      sort: { expires_at: 1 },
      hint: expiryIndex,
    },
  )
  return row?.expires_at?.getTime() ?? null
}

/**
 * Writes tombstones for memories that expired before they were stored, so that no later run stores them.
 * `findTombstonedBy` finds them until `finalizeTombstones`.
 */
export async function tombstoneAlreadyExpired(
  { memories }: MemoryCollection,
  { operation, vault, epoch }: VaultEpoch & { operation: string },
  ids: readonly string[],
): Promise<void> {
  const writes = ids.map(id => ({
    updateOne: {
      filter: { vault: { $eq: vault }, _id: { $eq: id } },
      update: { $setOnInsert: { tomb_epoch: epoch, tomb_by: operation, tomb_at: new Date() } },
      upsert: true,
      hint: idIndex,
    },
  }))
  await withWriteTimeout(memories.bulkWrite(writes, { ordered: false })).catch(
    refuseWhenUnreachable,
  )
}

/**
 * Sets the expiry of memories to the earlier of that of the retention and that asked for, as `expiryFor`.
 * Idempotent.
 *
 * @param days null: no retention
 */
export async function applyRetention(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  ids: readonly string[],
  days: number | null,
): Promise<void> {
  const endMs = { $add: [{ $toLong: '$stored_at' }, (days ?? 0) * dayMs] }
  const retainedUntil = { $toDate: { $subtract: [endMs, { $mod: [endMs, retentionStepMs] }] } }
  const expiry = days === null ? '$expires_asked' : { $min: ['$expires_asked', retainedUntil] }
  const update = memories.updateMany(
    idsFilter(scope, ids),
    [{ $set: { expires_at: { $ifNull: [expiry, '$$REMOVE'] } } }],
    { hint: idIndex },
  )
  await acknowledged(update)
}

/** The fields of a memory that determine its expiry. */
export type RetentionRow = {
  id: string
  session: string | null
  storedAt: number
  expiresAt: number | undefined
  expiresAsked: number | undefined
}

/** For background work. */
const scanDeadlineMs = 60_000

/** The number of memories of a vault, in its core and in all sessions. */
export const countVaultMemories = (
  { memories }: MemoryCollection,
  scope: VaultEpoch,
): Promise<number> =>
  countDocuments(memories, epochFilter(scope), { hint: partitionIndex }, scanDeadlineMs)

/**
 * A page of a vault's memories, in the order of its index.
 *
 * @param after the end of the page before; null starts at the beginning
 * @returns `after`: null for the last page
 */
export async function retentionPage(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  after: MemoryPosition | null,
  max: number,
): Promise<{ rows: RetentionRow[]; after: MemoryPosition | null }> {
  const { vault, epoch } = scope
  const [first, last] = [new MinKey(), new MaxKey()]
  const from = after
    ? { session: after.session, tier: after.tier, at: new Date(after.at), _id: after.id }
    : { session: first, tier: first, at: first, _id: first }
  const documents = await findDocuments(
    memories,
    { ...epochFilter(scope), ...(after && { _id: { $ne: after.id } }) },
    {
      projection: { session: 1, tier: 1, at: 1, stored_at: 1, expires_at: 1, expires_asked: 1 },
      hint: partitionIndex,
      min: { vault, epoch, ...from },
      max: { vault, epoch, session: last, tier: last, at: last, _id: last },
      limit: max,
    },
    scanDeadlineMs,
  )
  const end = documents.length < max ? undefined : documents.at(-1)
  return {
    rows: documents.map(toRetentionRow),
    after: end ? { session: end.session, tier: end.tier, at: end.at.getTime(), id: end._id } : null,
  }
}

const toRetentionRow = (document: MemoryDocument): RetentionRow => ({
  id: document._id,
  session: document.session || null,
  storedAt: document.stored_at.getTime(),
  expiresAt: document.expires_at?.getTime(),
  expiresAsked: document.expires_asked?.getTime(),
})

/** The position of a memory in the order of a vault's index. */
export type MemoryPosition = {
  session: string
  tier: number
  /** Epoch milliseconds. */
  at: number
  id: string
}
