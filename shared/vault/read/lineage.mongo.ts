import type { Filter } from 'mongodb'
import type { Memory, VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { memoryOf, saidFields, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import type { Span } from '#shared/domain/lease.ts'
import { byId } from '#shared/storage/mongo/indexes.ts'

/** A memory with what it was made of, and what it went into. */
export type Traced = Memory & {
  session: string | null
  sessionEpoch: number
  /** Of a reflection: the batch it was made of, every memory in it, oldest first, and their time. */
  batch: string | null
  sources: string[]
  covers: Span | null
  /** The batches that took it up. */
  consolidatedBy: string[]
}

/** All but the vectors. */
const fields = {
  ...saidFields,
  session: 1,
  session_epoch: 1,
  batch: 1,
  covers: 1,
} as const

/** A batch makes 100 reflections at most, and hardly ever does a memory belong to several. */
const coveringMax = 1_000

/** A memory of this epoch of the vault, in its core or in any session; undefined when there is none. */
export async function tracedMemory(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  id: string,
): Promise<Traced | undefined> {
  const projection = { ...fields, sources: 1, consolidated_by: 1 }
  const document = await memories
    .findOne(
      { _id: { $eq: id }, ...vaultOf(scope) },
      { projection, hint: byId, signal: deadline() },
    )
    .catch(refuseWhenUnreachable)
  return document ? tracedOf(document) : undefined
}

/** Those of the given memories that the core vault still has, in the given order. At most 2,000. */
export async function sourcesAmong(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<Memory[]> {
  const rows = await memories
    .find(amongCore(scope, ids), { projection: fields, hint: byId, signal: deadline() })
    .toArray()
    .catch(refuseWhenUnreachable)
  const found = new Map(rows.map(row => [row._id, memoryOf(row)]))
  return ids.flatMap(id => found.get(id) ?? [])
}

/** How many of the given memories the core vault still has. At most 2,000. */
export const countAmong = (
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<number> =>
  memories
    .countDocuments(amongCore(scope, ids), { hint: byId, signal: deadline() })
    .catch(refuseWhenUnreachable)

/** The reflections that came out of the given batches, oldest first, those of one time by id. */
export async function reflectionsOf(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  batches: readonly string[],
): Promise<Traced[]> {
  if (batches.length === 0) return []
  const rows = await memories
    .find(
      { ...vaultOf(scope), batch: { $in: [...batches] } },
      {
        projection: fields,
        hint: 'lineage',
        sort: { at: 1, _id: 1 },
        limit: coveringMax,
        signal: deadline(),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(tracedOf)
}

const vaultOf = ({ vault, epoch }: VaultScope): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

const amongCore = (scope: VaultScope, ids: readonly string[]): Filter<MemoryDocument> => ({
  _id: { $in: [...ids] },
  ...vaultOf(scope),
  session: { $eq: '' },
})

function tracedOf(document: MemoryDocument): Traced {
  const { session, session_epoch, batch, sources, covers, consolidated_by } = document
  return {
    ...memoryOf(document),
    session: session || null,
    sessionEpoch: session_epoch,
    batch: batch ?? null,
    sources: sources ?? [],
    covers: covers ? { from: covers.from.getTime(), to: covers.to.getTime() } : null,
    consolidatedBy: consolidated_by ?? [],
  }
}

const deadline = (): AbortSignal => AbortSignal.timeout(deadlineMs)
