import type { Filter } from 'mongodb'
import type { EmbeddedMemory, Tier, VaultScope } from '#shared/domain/memory.ts'
import type { AskedWindow, TimeWindow } from '#shared/vault/read/time-window.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import {
  embeddedMemoryOf,
  projectionOf,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { listedFields, listedRowOf, type ListedRow } from '#shared/vault/read/listing.mongo.ts'
import type { Place } from '#shared/storage/mongo/partition.ts'
import { byPlace } from '#shared/storage/mongo/indexes.ts'

export type TimelineRead = {
  place: Place
  window: TimeWindow
  tiers: readonly Tier[]
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Only what has a vector in this space. */
  space: string | undefined
}

type Directed = { oldestFirst: boolean }

/** Reflections that go on beyond the end of one window, or lie in it: enough for decades. */
const reflectionsMax = 5_000

/** Rows that share a millisecond: beyond so many they are not told apart. */
const sameMomentMax = 100_000

/**
 * The ids of all rows that stand in one millisecond, without order: of its own rows, and, where the
 * window ends in it, of the reflections that go on beyond.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
async function idsAt(
  mongo: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineRead,
  at: number,
): Promise<string[]> {
  const [own, beyond] = await Promise.all([
    mongo.memories
      .find(
        { ...rowsOf(scope, read), at: momentOf(at) },
        { projection: { _id: 1 }, hint: byPlace, limit: sameMomentMax, signal: deadline() },
      )
      .toArray()
      .catch(refuseWhenUnreachable),
    at === read.window.to.at ? reflectionsBeyond(mongo, scope, read) : [],
  ])
  return [...own.map(({ _id }) => _id), ...beyond.map(({ id }) => id)]
}

/** A part of what is told of a span of time: some vault, and what of it. */
export type Strand = { scope: VaultScope; read: Omit<TimelineRead, 'window'> }

/** The same over several strands, in order. */
export async function idsOfAll(
  mongo: Pick<Mongo, 'memories'>,
  strands: readonly Strand[],
  window: TimeWindow,
  at: number,
): Promise<string[]> {
  const ids = await Promise.all(
    strands.map(({ scope, read }) => idsAt(mongo, scope, { ...read, window }, at)),
  )
  return ids.flat().sort()
}

/** The window between the rows that its ends count. */
export async function windowOf(
  mongo: Pick<Mongo, 'memories'>,
  strands: readonly Strand[],
  { from, to, beyond }: AskedWindow,
): Promise<TimeWindow> {
  const whole: TimeWindow = { from: { at: from.at }, to: { at: to.at }, beyond }
  const rowAt = async (at: number, row: number): Promise<string | undefined> =>
    (await idsOfAll(mongo, strands, whole, at))[row]
  const [first, last] = await Promise.all([
    from.skipped === 0 ? undefined : rowAt(from.at, from.skipped),
    to.last === null ? undefined : rowAt(to.at, to.last),
  ])
  const isSpent = from.skipped > 0 && first === undefined
  return {
    from: { at: isSpent ? from.at + 1 : from.at, ...(first !== undefined && { id: first }) },
    to: { at: to.at, ...(last !== undefined && { id: last }) },
    beyond,
  }
}

/**
 * The rows whose moment lies in a window, in the order of time, as long as they are asked for.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function* rowsWithin(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineRead & Directed,
): AsyncGenerator<ListedRow, void, void> {
  const direction = read.oldestFirst ? 1 : -1
  const times = timesWithin(read.window)
  for (const time of read.oldestFirst ? times : times.toReversed()) {
    const cursor = memories.find(
      { ...rowsOf(scope, read), ...time },
      {
        projection: { ...listedFields, tags: 1, author: 1 },
        sort: { at: direction, _id: direction },
        hint: byPlace,
        batchSize: 500,
        signal: deadline(),
      },
    )
    try {
      for await (const document of cursor) yield listedRowOf(document)
    } catch (error) {
      refuseWhenUnreachable(error)
    }
  }
}

/**
 * The reflections whose period begins in a window, or before it, and goes on beyond its end; without
 * order, at most 5,000.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function reflectionsBeyond(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineRead,
): Promise<ListedRow[]> {
  if (!read.window.beyond || read.place.session !== null) return []
  if (read.tiers.every(tier => tier === 1)) return []
  const rows = await memories
    .find(
      { ...rowsOf(scope, reflectionsAlone(read)), ...goingBeyond(read.window) },
      { projection: listedFields, hint: byPlace, limit: reflectionsMax, signal: deadline() },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(listedRowOf)
}

/**
 * All reflections of a window, those going on beyond its end included, with their vectors in the space;
 * without order, at most 5,000 of each kind.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function embeddedReflections(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: TimelineRead & { space: string },
): Promise<{ memory: EmbeddedMemory; row: ListedRow }[]> {
  const kinds = timesWithin(read.window)
  if (read.window.beyond) kinds.push(goingBeyond(read.window))
  const found = await Promise.all(
    kinds.map(kind =>
      memories
        .find(
          { ...rowsOf(scope, reflectionsAlone(read)), ...kind },
          {
            projection: { ...listedFields, ...projectionOf(read.space) },
            hint: byPlace,
            limit: reflectionsMax,
            signal: deadline(),
          },
        )
        .toArray(),
    ),
  ).catch(refuseWhenUnreachable)
  return found.flat().map(document => ({
    memory: embeddedMemoryOf(document, read.space),
    row: listedRowOf(document),
  }))
}

const reflectionsAlone = <Read extends TimelineRead>(read: Read): Read => ({
  ...read,
  tiers: read.tiers.filter(tier => tier > 1),
})

function rowsOf(
  { vault, epoch }: VaultScope,
  { place, tiers, importance, space }: TimelineRead,
): Filter<MemoryDocument> {
  return {
    vault: { $eq: vault },
    epoch: { $eq: epoch },
    session: { $eq: place.session ?? '' },
    // The core has no epoch of its own; without the field counting goes by the index alone.
    ...(place.session !== null && { session_epoch: { $eq: place.sessionEpoch } }),
    tier: { $in: [...tiers] },
    ...(place.tagSets && { tag_set: { $in: [...place.tagSets] } }),
    ...(importance !== undefined && { importance: { $gte: importance } }),
    ...(space !== undefined && { [`vectors.${space}`]: { $exists: true } }),
  }
}

/**
 * The window as ranges of the index, in order: where an end lies inside a millisecond, what is left of
 * that one is a range of its own, given as a span so that the server reads it in order.
 */
function timesWithin({ from, to }: TimeWindow): Filter<MemoryDocument>[] {
  const first = { ...(from.id !== undefined && { $gte: from.id }) }
  const last = { ...(to.id !== undefined && { $lte: to.id }) }
  if (from.at === to.at && (from.id !== undefined || to.id !== undefined)) {
    return [{ at: momentOf(from.at), _id: { ...first, ...last } }]
  }
  return [
    ...(from.id === undefined ? [] : [{ at: momentOf(from.at), _id: first }]),
    {
      at: {
        [from.id === undefined ? '$gte' : '$gt']: new Date(from.at),
        [to.id === undefined ? '$lte' : '$lt']: new Date(to.at),
      },
    },
    ...(to.id === undefined ? [] : [{ at: momentOf(to.at), _id: last }]),
  ]
}

const momentOf = (at: number) => ({ $gt: new Date(at - 1), $lte: new Date(at) })

const goingBeyond = ({ to }: TimeWindow): Filter<MemoryDocument> => ({
  at: { $gt: new Date(to.at) },
  'covers.from': { $lte: new Date(to.at) },
})

const deadline = (): AbortSignal => AbortSignal.timeout(deadlineMs)
