import { addDebt, debtOf } from '#shared/vault/base/debt-of-memories.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import {
  aggregateDocuments,
  findDocuments,
  acknowledged,
  epochFilter,
  idsFilter,
  idBatches,
} from '#shared/storage/mongo/commands.ts'

type Deletion = Pick<DeleteIdsJob, 'operation' | 'vault' | 'epoch' | 'ids'>

/**
 * Makes the sources of deleted reflections unconsolidated again, where no reflection of their batch is left.
 * Safe to run again: each source is marked with the operation until `finishReleases`, and `countReleased` counts
 * the marks. Call it under the lock on the vault's contents, after the tombstones are written.
 */
export async function releaseSources(
  mongo: Pick<Mongo, 'memories'>,
  deletion: Deletion,
): Promise<void> {
  const { operation, vault, epoch } = deletion
  const deleted = await findDeletedBatches(mongo, deletion)
  const live = await findLiveBatches(mongo, deletion, [...deleted.keys()])
  for (const [batch, sources] of deleted) {
    if (live.has(batch)) continue
    for (const ids of idBatches(sources)) {
      const rest = { $setDifference: ['$consolidated_by', [{ $literal: batch }]] }
      const isRaw = { $eq: [{ $size: '$consolidated_by' }, 0] }
      const update = mongo.memories.updateMany(
        {
          ...epochFilter({ vault, epoch }),
          session: { $eq: '' },
          _id: { $in: ids },
          consolidated_by: { $eq: batch },
        },
        [
          { $set: { consolidated_by: rest } },
          {
            $set: {
              consolidated: { $not: [isRaw] },
              released_by: { $cond: [isRaw, { $literal: operation }, '$$REMOVE'] },
            },
          },
        ],
        { hint: idIndex },
      )
      await acknowledged(update)
    }
  }
}

/** What the sources that an operation has released add to the debt. */
export async function countReleased(
  mongo: Pick<Mongo, 'memories'>,
  deletion: Deletion,
): Promise<DebtChange> {
  let total: DebtChange = {}
  for (const ids of idBatches(await findSourceIds(mongo, deletion))) {
    const rows = await findDocuments(
      mongo.memories,
      { ...idsFilter(deletion, ids), released_by: { $eq: deletion.operation } },
      { projection: { tier: 1, tokens: 1, importance: 1, feedback: 1 }, hint: idIndex },
    )
    const released = rows.map(row => ({ ...row, session: null, consolidated: false }))
    total = addDebt(total, debtOf(released))
  }
  return total
}

/** Removes the marks of an operation whose deletion is settled. */
export async function finishReleases(
  mongo: Pick<Mongo, 'memories'>,
  deletion: Deletion,
): Promise<void> {
  const { operation, vault } = deletion
  for (const ids of idBatches(await findSourceIds(mongo, deletion))) {
    const update = mongo.memories.updateMany(
      { vault: { $eq: vault }, _id: { $in: ids }, released_by: { $eq: operation } },
      { $unset: { released_by: '' } },
      { hint: idIndex },
    )
    await acknowledged(update)
  }
}

/** The operations that have released some of these memories and have not removed their marks. */
export async function findReleasers(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<Deletion, 'vault' | 'epoch'>,
  ids: readonly string[],
): Promise<string[]> {
  const filter = idsFilter(scope, ids)
  const rows = await findDocuments(
    memories,
    { ...filter, released_by: { $exists: true } },
    { projection: { released_by: 1 }, hint: idIndex },
  )
  return [...new Set(rows.flatMap(({ released_by }) => released_by ?? []))]
}

/** Batches of the reflections that an operation has deleted, with their sources. */
async function findDeletedBatches(
  { memories }: Pick<Mongo, 'memories'>,
  { operation, vault, ids }: Deletion,
): Promise<Map<string, string[]>> {
  const rows = await findDocuments(
    memories,
    {
      vault: { $eq: vault },
      tomb_by: { $eq: operation },
      _id: { $in: [...ids] },
      batch: { $exists: true },
    },
    { projection: { batch: 1, sources: 1 }, hint: idIndex },
  )
  return new Map(rows.map(({ batch, sources = [] }) => [batch!, sources]))
}

const findSourceIds = async (
  mongo: Pick<Mongo, 'memories'>,
  deletion: Deletion,
): Promise<string[]> => [
  ...new Set([...(await findDeletedBatches(mongo, deletion)).values()].flat()),
]

/** Those of the batches that still have a reflection. */
async function findLiveBatches(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Deletion,
  batches: readonly string[],
): Promise<Set<string>> {
  if (batches.length === 0) return new Set()
  const rows = await aggregateDocuments<{ _id: string }>(
    memories,
    [
      { $match: { ...epochFilter(scope), batch: { $in: [...batches] } } },
      { $group: { _id: '$batch' } },
    ],
    { hint: 'lineage' },
  )
  return new Set(rows.map(({ _id }) => _id))
}
