import { MaxKey, MinKey, type Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { vectorOf, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { inTime } from '#shared/vault/base/memories.mongo.ts'
import type { IdsInPlace } from '#shared/vault/reembed/reembeddings.postgres.ts'
import { byId, byPlace } from '#shared/storage/mongo/indexes.ts'
import type { AfterMemory } from '#shared/vault/base/expiries.mongo.ts'

type Collections = Pick<Mongo, 'memories'>
type Scope = Pick<VaultScope, 'vault' | 'epoch'>

/** Background work: a look through 100,000 memories takes seconds, and nobody waits for it. */
const lookDeadlineMs = 60_000

const lacking = (space: string): Filter<MemoryDocument> => ({
  [`vectors.${space}`]: { $exists: false },
})

const having = (space: string): Filter<MemoryDocument> => ({
  [`vectors.${space}`]: { $exists: true },
})

const havingOthers = (space: string): Filter<MemoryDocument> => ({
  ...having(space),
  $expr: { $gt: [{ $size: { $objectToArray: '$vectors' } }, 1] },
})

const within = ({ vault, epoch }: Scope): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

export type Page = { places: IdsInPlace[]; after: AfterMemory | null }

export type Look = {
  /** Where the last look ended; null begins at the beginning. */
  after: AfterMemory | null
  /** Epochs of sessions that were cleared: what they held before is passed over. */
  sessionEpochs: ReadonlyMap<string, number>
  max: number
}

/** The next memories without a vector in a space, over all sessions and tiers. */
export const nextLacking = (mongo: Collections, scope: Scope, space: string, look: Look) =>
  nextPage(mongo, scope, lacking(space), look)

/** The next memories that have a vector in a space, and others beside it. */
export const nextWithOthers = (mongo: Collections, scope: Scope, space: string, look: Look) =>
  nextPage(mongo, scope, havingOthers(space), look)

/** Goes along the index `place`: each page begins where the last one ended and sees no other vault. */
async function nextPage(
  { memories }: Collections,
  scope: Scope,
  filter: Filter<MemoryDocument>,
  { after, sessionEpochs, max }: Look,
): Promise<Page> {
  const prefix = { vault: scope.vault, epoch: scope.epoch }
  const first = new MinKey()
  const last = new MaxKey()
  const cursor = memories.find(
    { ...within(scope), ...filter, ...(after && { _id: { $ne: after.id } }) },
    {
      projection: { session: 1, session_epoch: 1, tier: 1, at: 1 },
      hint: byPlace,
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
      signal: AbortSignal.timeout(lookDeadlineMs),
    },
  )
  const found = new Map<string, string[]>()
  let end: AfterMemory | null = null
  let count = 0
  try {
    for await (const { _id: id, session, session_epoch, tier, at } of cursor) {
      if (session_epoch !== (sessionEpochs.get(session) ?? 0)) continue
      const ids = found.get(session)
      if (ids) ids.push(id)
      else found.set(session, [id])
      end = { session, tier, at: at.getTime(), id }
      if (++count === max) break
    }
  } catch (error) {
    refuseWhenUnreachable(error)
  }
  const places = Array.from(found, ([session, ids]) => ({ session: session || null, ids }))
  return { places, after: end }
}

/** The spaces that one memory of a vault has vectors in; none where there is no such memory. */
export async function spacesOfMemory(
  { memories }: Collections,
  scope: Scope,
  id: string,
): Promise<string[]> {
  const row = await memories
    .findOne(
      { ...within(scope), _id: { $eq: id } },
      { projection: { vectors: 1 }, hint: byId, signal: AbortSignal.timeout(lookDeadlineMs) },
    )
    .catch(refuseWhenUnreachable)
  return Object.keys(row?.vectors ?? {})
}

/** How many memories have no vector in a space yet. */
export async function countLacking(
  { memories }: Collections,
  scope: Scope,
  space: string,
): Promise<number> {
  return memories
    .countDocuments(
      { ...within(scope), ...lacking(space) },
      { hint: byPlace, signal: AbortSignal.timeout(lookDeadlineMs) },
    )
    .catch(refuseWhenUnreachable)
}

/** A text to embed, as it was when it was read. */
export type BareText = { id: string; text: string; version: number }

/** Those of the given memories that have no vector in a space. */
export async function bareTexts(
  { memories }: Collections,
  scope: Scope,
  space: string,
  ids: readonly string[],
): Promise<BareText[]> {
  const rows = await memories
    .find(
      { ...within(scope), ...lacking(space), _id: { $in: [...ids] } },
      {
        projection: { text: 1, version: 1 },
        hint: byId,
        signal: AbortSignal.timeout(lookDeadlineMs),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id, text, version }) => ({ id: _id, text, version }))
}

/** The engine re-reads its buffer for every chunk: messages stay below 2 MB. */
const writeBytes = 1_500_000

/**
 * Gives memories a vector beside those they have, journaled. One that was changed since it was read is
 * left as it is; and whoever read one before, to change it, reads it again and finds this vector.
 */
export async function addVectors(
  { memories }: Collections,
  scope: Scope,
  space: string,
  added: readonly (BareText & { vector: Float32Array })[],
): Promise<void> {
  const rowsMax = Math.max(1, Math.floor(writeBytes / ((added[0]?.vector.byteLength ?? 0) + 200)))
  for (let start = 0; start < added.length; start += rowsMax) {
    const writes = added.slice(start, start + rowsMax).map(({ id, version, vector }) => ({
      updateOne: {
        filter: { ...within(scope), _id: { $eq: id }, version: { $eq: version } },
        update: { $set: { [`vectors.${space}`]: vectorOf(vector) }, $inc: { version: 1 } },
        hint: byId,
      },
    }))
    const writing = memories.bulkWrite(writes, { ordered: false })
    await inTime(writing).catch(refuseWhenUnreachable)
  }
}

/** How many of the given memories have a vector in a space. */
export async function countHaving(
  { memories }: Collections,
  scope: Scope,
  space: string,
  ids: readonly string[],
): Promise<number> {
  return memories
    .countDocuments(
      { ...within(scope), ...having(space), _id: { $in: [...ids] } },
      { hint: byId, signal: AbortSignal.timeout(lookDeadlineMs) },
    )
    .catch(refuseWhenUnreachable)
}

/** Takes every vector but the one of a space from the given memories; one without that keeps all. */
export async function dropOtherVectors(
  { memories }: Collections,
  scope: Scope,
  space: string,
  ids: readonly string[],
): Promise<void> {
  const kept = {
    $arrayToObject: {
      $filter: {
        input: { $objectToArray: '$vectors' },
        cond: { $eq: ['$$this.k', space] },
      },
    },
  }
  const writing = memories.updateMany(
    { ...within(scope), ...havingOthers(space), _id: { $in: [...ids] } },
    [{ $set: { vectors: kept, version: { $add: ['$version', 1] } } }],
    { hint: byId },
  )
  await inTime(writing).catch(refuseWhenUnreachable)
}
