import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import type { MemoryCollection } from '#shared/storage/mongo/connect.ts'
import { partitionIndex, tagSetIndex, unconsolidatedIndex } from '#shared/storage/mongo/indexes.ts'
import { aggregateDocuments, findDocument, epochFilter } from '#shared/storage/mongo/commands.ts'

/** Only an operator who restores a backup waits for these queries. */
const readDeadlineMs = 60_000

/** The newest epoch of all documents of a vault, tombstones included; 0 without any. */
export async function newestEpoch({ memories }: MemoryCollection, vault: string): Promise<number> {
  const [newest, [tombstone]] = await Promise.all([
    findDocument(
      memories,
      { vault: { $eq: vault }, epoch: { $gte: 0 } },
      { projection: { epoch: 1 }, sort: { epoch: -1 }, hint: partitionIndex },
      readDeadlineMs,
    ),
    aggregateDocuments<{ epoch: number | null }>(
      memories,
      [
        { $match: { vault: { $eq: vault }, epoch: { $exists: false } } },
        { $group: { _id: null, epoch: { $max: '$tomb_epoch' } } },
      ],
      { hint: partitionIndex },
      readDeadlineMs,
    ),
  ])
  return Math.max(newest?.epoch ?? 0, tombstone?.epoch ?? 0)
}

/** Whether documents of earlier epochs are left. */
export const hasEarlierEpochs = async (
  { memories }: MemoryCollection,
  { vault, epoch }: VaultEpoch,
): Promise<boolean> =>
  (await findDocument(
    memories,
    { vault: { $eq: vault }, epoch: { $gte: 0, $lt: epoch } },
    { projection: { _id: 1 }, hint: partitionIndex },
    readDeadlineMs,
  )) !== null

export type StoredSession = { session: string; epoch: number; storedAt: Date }

/** The sessions with memories in an epoch of a vault, each with its newest session epoch. */
export async function sessionsStored(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
): Promise<StoredSession[]> {
  const rows = await aggregateDocuments<{ _id: string; epoch: number; storedAt: Date }>(
    memories,
    [
      { $match: { ...epochFilter(scope), session: { $gt: '' } } },
      {
        $group: {
          _id: '$session',
          epoch: { $max: '$session_epoch' },
          storedAt: { $max: '$stored_at' },
        },
      },
    ],
    { hint: partitionIndex },
    readDeadlineMs,
  )
  return rows.map(({ _id: session, ...rest }) => ({ session, ...rest }))
}

export type UnconsolidatedTotals = Required<DebtChange>

/** What of a vault waits to be consolidated, without the memories of `unfinished` operations. */
export async function countUnconsolidated(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  unfinished: readonly string[],
): Promise<UnconsolidatedTotals> {
  const rows = await aggregateDocuments<{
    _id: number
    count: number
    tokens: number
    importance: number
  }>(
    memories,
    [
      {
        $match: {
          ...epochFilter(scope),
          session: '',
          consolidated: false,
          tier: { $in: [1, 2] },
          operation: { $nin: [...unfinished] },
        },
      },
      {
        $group: {
          _id: '$tier',
          count: { $sum: 1 },
          tokens: { $sum: '$tokens' },
          importance: { $sum: '$importance' },
        },
      },
    ],
    { hint: unconsolidatedIndex },
    readDeadlineMs,
  )
  const raw = rows.find(({ _id }) => _id === 1)
  const tier2 = rows.find(({ _id }) => _id === 2)
  return {
    rawUnits: raw?.count ?? 0,
    rawTokens: raw?.tokens ?? 0,
    tier2Count: tier2?.count ?? 0,
    tier2Importance: tier2?.importance ?? 0,
    tier2Tokens: tier2?.tokens ?? 0,
  }
}

/** The number of shared memories of a vault per set of tags. */
export async function countByTagSet(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
): Promise<{ tagSet: string; memories: number }[]> {
  const rows = await aggregateDocuments<{ _id: string; memories: number }>(
    memories,
    [
      { $match: { ...epochFilter(scope), tag_set: { $exists: true } } },
      { $group: { _id: '$tag_set', memories: { $sum: 1 } } },
    ],
    { hint: tagSetIndex },
    readDeadlineMs,
  )
  return rows.map(({ _id: tagSet, memories: count }) => ({ tagSet, memories: count }))
}

/** The days, in UTC, on which the tombstones of a vault were set. */
export async function tombstoneDays(
  { memories }: MemoryCollection,
  vault: string,
): Promise<string[]> {
  const rows = await aggregateDocuments<{ _id: string }>(
    memories,
    [
      {
        $match: { vault: { $eq: vault }, epoch: { $exists: false }, tomb_at: { $exists: true } },
      },
      { $group: { _id: { $dateToString: { date: '$tomb_at', format: '%Y-%m-%d' } } } },
    ],
    { hint: partitionIndex },
    readDeadlineMs,
  )
  return rows.map(({ _id }) => _id)
}
