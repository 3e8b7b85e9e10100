import type { Caller } from '#shared/access/caller.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { withoutClearedSessions } from '#shared/vault/base/vaults.postgres.ts'
import { sum } from '#shared/vault/delete/delete-memories.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { Condition } from '#shared/domain/condition.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import { findDocuments, epochFilter, idsFilter, idBatches } from '#shared/storage/mongo/commands.ts'

/** What a deletion would do. */
export type DeletionPreview = {
  /** Different ids that were asked for. */
  requested: number
  /** Those of them that would be deleted, in the order they were asked for. */
  ids: string[]
  tokens: number
  /** Memories that would be unconsolidated again: no reflection of their batches would be left. */
  sourcesReleased: number
  /** Reflections that would stay, over some of the deleted memories. */
  reflectionsLeft: number
}

/** What `acceptAndDelete` would do with these ids now. Writes nothing. */
export async function previewDeletion(
  stores: Stores,
  { scope }: Pick<Caller, 'scope'>,
  ids: readonly string[],
): Promise<DeletionPreview> {
  const requested = [...new Set(ids.map(id => id.toLowerCase()))]
  const live = await findDeletable(stores.mongo, scope, requested)
  const found = await withoutClearedSessions(stores.postgres.query, scope, live)
  const deleted = new Set(found.map(({ id }) => id))
  return {
    requested: requested.length,
    ids: requested.filter(id => deleted.has(id)),
    tokens: sum(found, ({ tokens }) => tokens),
    ...(await lineageAfter(stores, scope, found, deleted)),
  }
}

async function lineageAfter(
  { mongo }: Stores,
  scope: Caller['scope'],
  found: readonly DeletableMemory[],
  deleted: ReadonlySet<string>,
): Promise<Pick<DeletionPreview, 'sourcesReleased' | 'reflectionsLeft'>> {
  const covering = new Set(found.flatMap(({ consolidatedBy }) => consolidatedBy))
  const touched = new Set(found.flatMap(({ batch }) => batch ?? []))
  const reflections = await findReflectionsIn(mongo, scope, [...covering.union(touched)])
  const left = reflections.filter(({ id }) => !deleted.has(id))
  const ended = touched.difference(new Set(left.map(({ batch }) => batch)))
  const sources = new Set(
    found.flatMap(({ batch, sources }) => (batch !== null && ended.has(batch) ? sources : [])),
  )
  let sourcesReleased = 0
  for (const part of idBatches([...sources.difference(deleted)]))
    sourcesReleased += (await findConsolidatedOnlyBy(mongo, scope, part, [...ended])).length
  return {
    sourcesReleased,
    reflectionsLeft: left.filter(({ batch }) => covering.has(batch)).length,
  }
}

type EpochScope = Pick<VaultScope, 'vault' | 'epoch'>

/** What a deletion of a memory depends on. */
type DeletableMemory = {
  id: string
  session: string | null
  sessionEpoch: number
  tokens: number
  /** For a reflection: its batch, and the ids of all memories of that batch. */
  batch: string | null
  sources: string[]
  /** The batches that included this memory. */
  consolidatedBy: string[]
}

/** Those of the given ids that exist at this epoch of the vault, in its core or in any session; at most 500. */
async function findDeletable(
  { memories }: Pick<Mongo, 'memories'>,
  scope: EpochScope,
  ids: readonly string[],
): Promise<DeletableMemory[]> {
  const rows = await findDocuments(memories, idsFilter(scope, ids), {
    projection: deletableFields,
    hint: idIndex,
  })
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
async function findReflectionsIn(
  { memories }: Pick<Mongo, 'memories'>,
  scope: EpochScope,
  batches: readonly string[],
): Promise<{ id: string; batch: string }[]> {
  if (batches.length === 0) return []
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), batch: { $in: [...batches] } },
    { projection: { batch: 1 }, hint: 'lineage' },
  )
  return rows.map(({ _id, batch }) => ({ id: _id, batch: batch! }))
}

/** Those of the core's given memories that belong to no other batches than these. */
async function findConsolidatedOnlyBy(
  { memories }: Pick<Mongo, 'memories'>,
  scope: EpochScope,
  ids: readonly string[],
  batches: readonly string[],
): Promise<string[]> {
  const rows = await findDocuments(
    memories,
    {
      ...epochFilter(scope),
      session: { $eq: '' },
      _id: { $in: [...ids] },
      consolidated_by: { $in: [...batches], $not: { $elemMatch: { $nin: [...batches] } } },
    },
    { projection: { _id: 1 }, hint: idIndex },
  )
  return rows.map(({ _id }) => _id)
}

/** The ids of at most `max` memories that meet a condition, sessions included, the earliest first in each. */
export async function idsMeeting(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  condition: Condition,
  max: number,
): Promise<string[]> {
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), ...conditionFilter(condition) },
    {
      projection: { _id: 1 },
      hint: partitionIndex,
      limit: max,
    },
  )
  return rows.map(({ _id }) => _id)
}
