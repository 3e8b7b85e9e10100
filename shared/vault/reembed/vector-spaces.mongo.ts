import { MaxKey, MinKey, type Filter } from 'mongodb'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type MemoryCollection } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import type { PartitionIds } from '#shared/vault/reembed/vault-models.postgres.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { MemoryPosition } from '#shared/vault/base/expiries.mongo.ts'
import {
  acknowledged,
  countDocuments,
  findDocuments,
  findDocument,
  epochFilter,
} from '#shared/storage/mongo/commands.ts'

/** Background work: a scan of 100,000 memories takes seconds, and no request waits for it. */
const scanDeadlineMs = 60_000

const withoutVector = (space: string): Filter<MemoryDocument> => ({
  [`vectors.${space}`]: { $exists: false },
})

const withVector = (space: string): Filter<MemoryDocument> => ({
  [`vectors.${space}`]: { $exists: true },
})

const withOtherVectors = (space: string): Filter<MemoryDocument> => ({
  ...withVector(space),
  $expr: { $gt: [{ $size: { $objectToArray: '$vectors' } }, 1] },
})

export type ReembeddingPageOptions = {
  /** The last memory of the previous page; null for the first page. */
  after: MemoryPosition | null
  /** Epochs of sessions that were cleared: their earlier memories are skipped. */
  sessionEpochs: ReadonlyMap<string, number>
  max: number
}

/** The next memories without a vector in a space, over all sessions and tiers. */
export const nextWithoutVector = (
  mongo: MemoryCollection,
  scope: VaultEpoch,
  space: string,
  options: ReembeddingPageOptions,
) => nextPage(mongo, scope, withoutVector(space), options)

/** The next memories that have a vector in a space and in others. */
export const nextWithOtherVectors = (
  mongo: MemoryCollection,
  scope: VaultEpoch,
  space: string,
  options: ReembeddingPageOptions,
) => nextPage(mongo, scope, withOtherVectors(space), options)

/** Reads a page in the order of the index `place`, from where the previous page ended. */
async function nextPage(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  filter: Filter<MemoryDocument>,
  { after, sessionEpochs, max }: ReembeddingPageOptions,
): Promise<{ places: PartitionIds[]; after: MemoryPosition | null }> {
  const prefix = { vault: scope.vault, epoch: scope.epoch }
  const first = new MinKey()
  const last = new MaxKey()
  const cursor = memories.find(
    { ...epochFilter(scope), ...filter, ...(after && { _id: { $ne: after.id } }) },
    {
      projection: { session: 1, session_epoch: 1, tier: 1, at: 1 },
      hint: partitionIndex,
      min: after
        ? {
            ...prefix,
            session: after.session,
            tier: after.tier,
            at: new Date(after.at),
            _id: after.id,
          }
        : { ...prefix, session: first, tier: first, at: first, _id: first },
      max: { ...prefix, session: last, tier: last, at: last, _id: last },
      batchSize: max,
      signal: deadline(memories, scanDeadlineMs),
    },
  )
  const idsBySpace = new Map<string, string[]>()
  let end: MemoryPosition | null = null
  let count = 0
  try {
    for await (const { _id: id, session, session_epoch, tier, at } of cursor) {
      if (session_epoch !== (sessionEpochs.get(session) ?? 0)) continue
      const ids = idsBySpace.get(session)
      if (ids) ids.push(id)
      else idsBySpace.set(session, [id])
      end = { session, tier, at: at.getTime(), id }
      if (++count === max) break
    }
  } catch (error) {
    refuseWhenUnreachable(error)
  }
  const places = Array.from(idsBySpace, ([session, ids]) => ({ session: session || null, ids }))
  return { places, after: end }
}

/** The spaces in which a memory has vectors; none when the vault has no such memory. */
export async function spacesOfMemory(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  id: string,
): Promise<string[]> {
  const row = await findDocument(
    memories,
    { ...epochFilter(scope), _id: { $eq: id } },
    { projection: { vectors: 1 }, hint: idIndex },
    scanDeadlineMs,
  )
  return Object.keys(row?.vectors ?? {})
}

/** How many memories have no vector in a space yet. */
export async function countWithoutVector(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  space: string,
): Promise<number> {
  return countDocuments(
    memories,
    { ...epochFilter(scope), ...withoutVector(space) },
    { hint: partitionIndex },
    scanDeadlineMs,
  )
}

/** Those of the given memories that have no vector in a space. */
export async function textsWithoutVector(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  space: string,
  ids: readonly string[],
): Promise<{ id: string; text: string; version: number }[]> {
  const rows = await findDocuments(
    memories,
    { ...epochFilter(scope), ...withoutVector(space), _id: { $in: [...ids] } },
    {
      projection: { text: 1, version: 1 },
      hint: idIndex,
    },
    scanDeadlineMs,
  )
  return rows.map(({ _id, text, version }) => ({ id: _id, text, version }))
}

/** The engine re-reads its buffer for every chunk: messages stay below 2 MB. */
const writeBytes = 1_500_000

/**
 * Adds vectors to memories, journaled. A memory that was changed since it was read stays as it is; a concurrent
 * edit fails its version check and reads again.
 */
export async function addVectors(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  space: string,
  added: readonly ({ id: string; text: string; version: number } & { vector: Float32Array })[],
): Promise<void> {
  const rowsMax = Math.max(1, Math.floor(writeBytes / ((added[0]?.vector.byteLength ?? 0) + 200)))
  for (let start = 0; start < added.length; start += rowsMax) {
    const writes = added.slice(start, start + rowsMax).map(({ id, version, vector }) => ({
      updateOne: {
        filter: { ...epochFilter(scope), _id: { $eq: id }, version: { $eq: version } },
        update: { $set: { [`vectors.${space}`]: toBinaryVector(vector) }, $inc: { version: 1 } },
        hint: idIndex,
      },
    }))
    const writing = memories.bulkWrite(writes, { ordered: false })
    await acknowledged(writing)
  }
}

/** How many of the given memories have a vector in a space. */
export async function countWithVector(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  space: string,
  ids: readonly string[],
): Promise<number> {
  return countDocuments(
    memories,
    { ...epochFilter(scope), ...withVector(space), _id: { $in: [...ids] } },
    { hint: idIndex },
    scanDeadlineMs,
  )
}

/** Removes all vectors but that of a space from the given memories; a memory without that one keeps all. */
export async function dropOtherVectors(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  space: string,
  ids: readonly string[],
): Promise<void> {
  const remaining = {
    $arrayToObject: {
      $filter: { input: { $objectToArray: '$vectors' }, cond: { $eq: ['$$this.k', space] } },
    },
  }
  const writing = memories.updateMany(
    { ...epochFilter(scope), ...withOtherVectors(space), _id: { $in: [...ids] } },
    [{ $set: { vectors: remaining, version: { $add: ['$version', 1] } } }],
    { hint: idIndex },
  )
  await acknowledged(writing)
}
