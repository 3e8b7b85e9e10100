import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Memory } from '#shared/domain/memory.ts'
import {
  countCoreSources,
  findReflectionsOfBatches,
  findCoreSources,
  findMemoryLineage,
  type MemoryLineage,
} from '#shared/vault/read/lists/lineage.mongo.ts'
import { findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Sources in one answer. */
const sourcesMax = 500
/** Ids in one command: the engine re-reads its buffer for every chunk of a long message. */
const idsMax = 2_000

export type MemoryInspection = {
  memory: MemoryLineage
  /** Of the tier below, oldest first: at most 500 of those that still exist. */
  sources: Memory[]
  /** Including deleted ones. */
  sourcesTotal: number
  sourcesDeleted: number
  /** Of the tier above. */
  consolidatedInto: MemoryLineage[]
}

/**
 * A memory with the sources it was consolidated from and the reflections it was consolidated into.
 *
 * @param id in upper or lower case
 * @throws Refusal `missing` when the vault has no such memory; `unavailable` when a store is out of reach.
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
  new Refusal('missing', 'No such memory', 'memory_id is the id that list and search answer')

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
  for (let start = 0; start < ids.length; start += idsMax) {
    const batch = ids.slice(start, start + idsMax)
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
