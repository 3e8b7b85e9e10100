import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'

type EpochScope = Pick<VaultScope, 'vault' | 'epoch'>

/** What a deletion of a memory depends on. */
export type DeletableMemory = {
  id: string
  session: string | null
  sessionEpoch: number
  tokens: number
  /** Of a reflection: its batch, and the ids of all memories of that batch. */
  batch: string | null
  sources: string[]
  /** The batches that included this memory. */
  consolidatedBy: string[]
}

/** Those of the given ids that exist at this epoch of the vault, in its core or in any session; at most 500. */
export async function findDeletable(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: EpochScope,
  ids: readonly string[],
): Promise<DeletableMemory[]> {
  const rows = await memories
    .find(
      { vault: { $eq: vault }, epoch: { $eq: epoch }, _id: { $in: [...ids] } },
      { projection: deletableFields, hint: idIndex, signal: deadline(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id, session, session_epoch, tokens, batch, sources, consolidated_by }) => ({
    id: _id,
    session: session || null,
    sessionEpoch: session_epoch,
    tokens,
    batch: batch ?? null,
    sources: sources ?? [],
    consolidatedBy: consolidated_by ?? [],
  }))
}

const deletableFields = {
  session: 1,
  session_epoch: 1,
  tokens: 1,
  batch: 1,
  sources: 1,
  consolidated_by: 1,
} as const

/** The reflections of these batches, by id, each with its batch. */
export async function findReflectionsIn(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: EpochScope,
  batches: readonly string[],
): Promise<{ id: string; batch: string }[]> {
  if (batches.length === 0) return []
  const rows = await memories
    .find(
      { vault: { $eq: vault }, epoch: { $eq: epoch }, batch: { $in: [...batches] } },
      { projection: { batch: 1 }, hint: 'lineage', signal: deadline(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id, batch }) => ({ id: _id, batch: batch! }))
}

/** Those of the core's given memories that belong to no other batches than these. */
export async function findConsolidatedOnlyBy(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: EpochScope,
  ids: readonly string[],
  batches: readonly string[],
): Promise<string[]> {
  const rows = await memories
    .find(
      {
        vault: { $eq: vault },
        epoch: { $eq: epoch },
        session: { $eq: '' },
        _id: { $in: [...ids] },
        consolidated_by: { $in: [...batches], $not: { $elemMatch: { $nin: [...batches] } } },
      },
      { projection: { _id: 1 }, hint: idIndex, signal: deadline(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id }) => _id)
}
