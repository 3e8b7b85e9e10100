import type { Refusal } from '#shared/core/errors.ts'
import { noSuchMemory } from '#shared/core/refusals.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Memory, VaultScope } from '#shared/domain/memory.ts'
import { findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Filter } from 'mongodb'
import {
  memoryFromDocument,
  memoryFields,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import type { Span } from '#shared/domain/lease.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import {
  countDocuments,
  findDocuments,
  findDocument,
  epochFilter,
  idBatches,
} from '#shared/storage/mongo/commands.ts'

/** Sources in one answer. */
const sourcesMax = 500

export type MemoryInspection = {
  memory: MemoryLineage
  /** Memories of the tier below, oldest first: at most 500 of those that still exist. */
  sources: Memory[]
  /** Including deleted ones. */
  sourcesTotal: number
  sourcesDeleted: number
  /** Reflections of the tier above. */
  consolidatedInto: MemoryLineage[]
}

/**
 * A memory with the sources it was consolidated from and the reflections it was consolidated into.
 *
 * @param id in upper or lower case
 * @throws Refusal `missing` when the vault has no such memory; `unavailable`.
 */
export async function inspectMemory(
  backend: Stores,
  { scope }: Pick<Caller, 'scope'>,
  id: string,
): Promise<MemoryInspection> {
  const memory = await findMemoryLineage(backend.mongo, scope, id.toLowerCase())
  if (!memory || !(await isInCurrentEpoch(backend, scope, memory))) throw memoryNotFound()
  const [{ sources, liveCount }, into] = await Promise.all([
    liveSources(backend, scope, memory.sources),
    findReflectionsOfBatches(backend.mongo, scope, memory.consolidatedBy),
  ])
  const total = memory.sources.length
  return {
    memory,
    sources,
    sourcesTotal: total,
    sourcesDeleted: total - liveCount,
    consolidatedInto: into,
  }
}

export const memoryNotFound = (): Refusal =>
  noSuchMemory('memory_id is the id that list and search answer')

/** Whether a memory was stored after its session was last cleared. */
export async function isInCurrentEpoch(
  { postgres }: { postgres: Postgres },
  scope: Caller['scope'],
  { session, sessionEpoch }: Pick<MemoryLineage, 'session' | 'sessionEpoch'>,
): Promise<boolean> {
  return sessionEpoch === (await findSessionEpoch(postgres.query, scope, session))
}

async function liveSources(
  { mongo }: { mongo: Mongo },
  scope: Caller['scope'],
  ids: readonly string[],
): Promise<{ sources: Memory[]; liveCount: number }> {
  const sources: Memory[] = []
  let liveCount = 0
  for (const batch of idBatches(ids)) {
    if (sources.length >= sourcesMax) {
      liveCount += await countCoreSources(mongo, scope, batch)
      continue
    }
    const coreSources = await findCoreSources(mongo, scope, batch)
    liveCount += coreSources.length
    sources.push(...coreSources.slice(0, sourcesMax - sources.length))
  }
  return { sources, liveCount }
}

/** A memory with its sources and the batches that consolidated it. */
export type MemoryLineage = Memory & {
  session: string | null
  sessionEpoch: number
  /** For a reflection: its batch, the ids of all memories of that batch, oldest first, and their period. */
  batch: string | null
  sources: string[]
  covers: Span | null
  /** The batches that included this memory. */
  consolidatedBy: string[]
}

/** All but the vectors. */
const fields = { ...memoryFields, session: 1, session_epoch: 1, batch: 1, covers: 1 } as const

/** A batch yields at most 100 reflections, and a memory rarely belongs to several batches. */
const coveringMax = 1_000

/** A memory of this epoch of the vault, in its core or in any session; undefined when there is none. */
async function findMemoryLineage(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  id: string,
): Promise<MemoryLineage | undefined> {
  const projection = { ...fields, sources: 1, consolidated_by: 1 }
  const document = await findDocument(
    memories,
    { _id: { $eq: id }, ...epochFilter(scope) },
    { projection, hint: idIndex },
  )
  return document ? lineageFromDocument(document) : undefined
}

/** Those of the given memories that the core vault still has, in the given order. At most 2,000. */
async function findCoreSources(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<Memory[]> {
  const rows = await findDocuments(memories, coreIdsFilter(scope, ids), {
    projection: fields,
    hint: idIndex,
  })
  const memoriesById = new Map(rows.map(row => [row._id, memoryFromDocument(row)]))
  return ids.flatMap(id => memoriesById.get(id) ?? [])
}

/** How many of the given memories the core vault still has. At most 2,000. */
const countCoreSources = (
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  ids: readonly string[],
): Promise<number> => countDocuments(memories, coreIdsFilter(scope, ids), { hint: idIndex })

/** The reflections of the given batches, oldest first, those of the same time by id. */
async function findReflectionsOfBatches(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  batches: readonly string[],
): Promise<MemoryLineage[]> {
  if (batches.length === 0) return []
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), batch: { $in: [...batches] } },
    {
      projection: fields,
      hint: 'lineage',
      sort: { at: 1, _id: 1 },
      limit: coveringMax,
    },
  )
  return rows.map(lineageFromDocument)
}

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
