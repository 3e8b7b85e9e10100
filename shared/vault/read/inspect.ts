import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Memory } from '#shared/domain/memory.ts'
import {
  countAmong,
  reflectionsOf,
  sourcesAmong,
  tracedMemory,
  type Traced,
} from '#shared/vault/read/lineage.mongo.ts'
import { sessionEpochOf } from '#shared/vault/base/changes.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Most sources of one answer. */
const sourcesMax = 500
/** Ids in one command: the engine re-reads its buffer for every chunk of a long message. */
const idsMax = 2_000

export type Inspected = {
  memory: Traced
  /** The tier below, oldest first: at most 500 of those that are left. */
  sources: Memory[]
  /** All it was made of, deleted ones included. */
  total: number
  deleted: number
  /** The tier above. */
  into: Traced[]
}

/**
 * What a reflection was made of, and what was made of a memory.
 *
 * @param id in any case.
 * @throws Refusal `missing` when the vault has no such memory; `unavailable` when a store is out of reach.
 */
export async function inspectMemory(
  backend: Stores,
  { scope }: Pick<Caller, 'scope'>,
  id: string,
): Promise<Inspected> {
  const memory = await tracedMemory(backend.mongo, scope, id.toLowerCase())
  if (!memory || !(await isCurrent(backend, scope, memory))) throw noSuchMemory()
  const [{ sources, living }, into] = await Promise.all([
    livingSources(backend, scope, memory.sources),
    reflectionsOf(backend.mongo, scope, memory.consolidatedBy),
  ])
  const total = memory.sources.length
  return { memory, sources, total, deleted: total - living, into }
}

export const noSuchMemory = (): Refusal =>
  new Refusal('missing', 'No such memory', 'memory_id is the id that list and search answer')

/** A session that was cleared has no memories from before. */
export async function isCurrent(
  { postgres }: { postgres: Postgres },
  scope: Caller['scope'],
  { session, sessionEpoch }: Pick<Traced, 'session' | 'sessionEpoch'>,
): Promise<boolean> {
  return sessionEpoch === (await sessionEpochOf(postgres.query, scope, session))
}

async function livingSources(
  { mongo }: { mongo: Mongo },
  scope: Caller['scope'],
  ids: readonly string[],
): Promise<{ sources: Memory[]; living: number }> {
  const sources: Memory[] = []
  let living = 0
  for (let start = 0; start < ids.length; start += idsMax) {
    const some = ids.slice(start, start + idsMax)
    if (sources.length >= sourcesMax) {
      living += await countAmong(mongo, scope, some)
      continue
    }
    const found = await sourcesAmong(mongo, scope, some)
    living += found.length
    sources.push(...found.slice(0, sourcesMax - sources.length))
  }
  return { sources, living }
}
