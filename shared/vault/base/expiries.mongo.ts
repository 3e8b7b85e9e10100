import { MaxKey, MinKey, type Filter } from 'mongodb'
import { dayMs, retentionStepMs } from '#shared/domain/expiry.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { expiryIndex, idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { withWriteTimeout } from '#shared/vault/base/memories.mongo.ts'

type Collections = Pick<Mongo, 'memories'>
type Scope = Pick<VaultScope, 'vault' | 'epoch'>

/**
 * The memories of a vault that are over at a moment, in its core and in all sessions, those that were
 * over first before the others.
 *
 * @param max no more than this are read.
 */
export async function findExpiredIds(
  { memories }: Collections,
  scope: Scope,
  at: number,
  max: number,
): Promise<string[]> {
  const rows = await memories
    .find(
      { ...epochFilter(scope), expires_at: { $lte: new Date(at) } },
      {
        projection: { _id: 1 },
        sort: { expires_at: 1 },
        hint: expiryIndex,
        limit: max,
        signal: deadline(),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id }) => _id)
}

/** When the next memory of a vault will be over, in epoch milliseconds; null when none ever is. */
export async function findNextExpiry(
  { memories }: Collections,
  scope: Scope,
): Promise<number | null> {
  const row = await memories
    .findOne(
      { ...epochFilter(scope), expires_at: { $exists: true } },
      {
        projection: { expires_at: 1 },
        sort: { expires_at: 1 },
        hint: expiryIndex,
        signal: deadline(),
      },
    )
    .catch(refuseWhenUnreachable)
  return row?.expires_at?.getTime() ?? null
}

/**
 * Takes the ids of memories that were over before they could be stored: nothing of them is, and no
 * later run stores them. `buriedBy` tells which they are, until `levelGraves`.
 */
export async function tombstoneAlreadyExpired(
  { memories }: Collections,
  { operation, vault, epoch }: Scope & { operation: string },
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
 * Gives memories the end that a retention and what was asked for each of them lead to; the same as
 * `endsOf`, counted from when they were stored. Doing it again changes nothing.
 *
 * @param days null where there is no retention.
 */
export async function applyRetention(
  { memories }: Collections,
  scope: Scope,
  ids: readonly string[],
  days: number | null,
): Promise<void> {
  const whole = { $add: [{ $toLong: '$stored_at' }, (days ?? 0) * dayMs] }
  const kept = { $toDate: { $subtract: [whole, { $mod: [whole, retentionStepMs] }] } }
  const expiry = days === null ? '$expires_asked' : { $min: ['$expires_asked', kept] }
  const writing = memories.updateMany(
    { ...epochFilter(scope), _id: { $in: [...ids] } },
    [{ $set: { expires_at: { $ifNull: [expiry, '$$REMOVE'] } } }],
    { hint: idIndex },
  )
  await withWriteTimeout(writing).catch(refuseWhenUnreachable)
}

/** What the retention of a memory goes by. */
export type RetentionRow = {
  id: string
  session: string | null
  storedAt: number
  expiresAt: number | undefined
  expiresAsked: number | undefined
}

/** Background work: nobody waits for it. */
const scanDeadlineMs = 60_000

/** How many memories a vault has, in its core and in all sessions. */
export const countVaultMemories = ({ memories }: Collections, scope: Scope): Promise<number> =>
  memories
    .countDocuments(epochFilter(scope), {
      hint: partitionIndex,
      signal: AbortSignal.timeout(scanDeadlineMs),
    })
    .catch(refuseWhenUnreachable)

/**
 * The next memories of a vault, in the order of its index.
 *
 * @param after where the page before ended; null begins at the beginning.
 * @returns them, and where they end; null when no further page follows.
 */
export async function retentionPage(
  { memories }: Collections,
  scope: Scope,
  after: MemoryPosition | null,
  max: number,
): Promise<{ rows: RetentionRow[]; after: MemoryPosition | null }> {
  const { vault, epoch } = scope
  const [first, last] = [new MinKey(), new MaxKey()]
  const from = after
    ? { session: after.session, tier: after.tier, at: new Date(after.at), _id: after.id }
    : { session: first, tier: first, at: first, _id: first }
  const documents = await memories
    .find(
      { ...epochFilter(scope), ...(after && { _id: { $ne: after.id } }) },
      {
        projection: { session: 1, tier: 1, at: 1, stored_at: 1, expires_at: 1, expires_asked: 1 },
        hint: partitionIndex,
        min: { vault, epoch, ...from },
        max: { vault, epoch, session: last, tier: last, at: last, _id: last },
        limit: max,
        signal: AbortSignal.timeout(scanDeadlineMs),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
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

const epochFilter = ({ vault, epoch }: Scope): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

const deadline = (): AbortSignal => AbortSignal.timeout(deadlineMs)

/** Where a look through a vault goes on, in the order of its index. */
export type MemoryPosition = {
  session: string
  tier: number
  /** Epoch milliseconds. */
  at: number
  id: string
}
