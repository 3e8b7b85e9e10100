import type { Filter } from 'mongodb'
import type { Memory, VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  memoryFromDocument,
  memoryFields,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import type { Span } from '#shared/domain/lease.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'

/** A memory with its sources and the batches that consolidated it. */
export type MemoryLineage = Memory & {
  session: string | null
  sessionEpoch: number
  /** Of a reflection: its batch, the ids of all memories of that batch, oldest first, and their period. */
  batch: string | null
  sources: string[]
  covers: Span | null
  /** The batches that included this memory. */
  consolidatedBy: string[]
}

/** All but the vectors. */
const fields = {
  ...memoryFields,
  session: 1,
  session_epoch: 1,
  batch: 1,
  covers: 1,
} as const

/** A batch yields at most 100 reflections, and a memory rarely belongs to several batches. */
const coveringMax = 1_000

/** A memory of this epoch of the vault, in its core or in any session; undefined when there is none. */
export async function findMemoryLineage(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  id: string,
): Promise<MemoryLineage | undefined> {
  const projection = { ...fields, sources: 1, consolidated_by: 1 }
  const document = await memories
    .findOne(
      { _id: { $eq: id }, ...epochFilter(scope) },
      { projection, hint: idIndex, signal: deadline(memories) },
    )
    .catch(refuseWhenUnreachable)
  return document ? lineageFromDocument(document) : undefined
}

/** Those of the given memories that the core vault still has, in the given order. At most 2,000. */
export async function findCoreSources(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<Memory[]> {
  const rows = await memories
    .find(coreIdsFilter(scope, ids), {
      projection: fields,
      hint: idIndex,
      signal: deadline(memories),
    })
    .toArray()
    .catch(refuseWhenUnreachable)
  const memoriesById = new Map(rows.map(row => [row._id, memoryFromDocument(row)]))
  return ids.flatMap(id => memoriesById.get(id) ?? [])
}

/** How many of the given memories the core vault still has. At most 2,000. */
export const countCoreSources = (
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<number> =>
  memories
    .countDocuments(coreIdsFilter(scope, ids), { hint: idIndex, signal: deadline(memories) })
    .catch(refuseWhenUnreachable)

/** The reflections of the given batches, oldest first, those of the same time by id. */
export async function findReflectionsOfBatches(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  batches: readonly string[],
): Promise<MemoryLineage[]> {
  if (batches.length === 0) return []
  const rows = await memories
    .find(
      { ...epochFilter(scope), batch: { $in: [...batches] } },
      {
        projection: fields,
        hint: 'lineage',
        sort: { at: 1, _id: 1 },
        limit: coveringMax,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(lineageFromDocument)
}

const epochFilter = ({ vault, epoch }: VaultScope): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

const coreIdsFilter = (scope: VaultScope, ids: readonly string[]): Filter<MemoryDocument> => ({
  _id: { $in: [...ids] },
  ...epochFilter(scope),
  session: { $eq: '' },
})

function lineageFromDocument(document: MemoryDocument): MemoryLineage {
  const { session, session_epoch, batch, sources, covers, consolidated_by } = document
  return {
    ...memoryFromDocument(document),
    session: session || null,
    sessionEpoch: session_epoch,
    batch: batch ?? null,
    sources: sources ?? [],
    covers: covers ? { from: covers.from.getTime(), to: covers.to.getTime() } : null,
    consolidatedBy: consolidated_by ?? [],
  }
}
