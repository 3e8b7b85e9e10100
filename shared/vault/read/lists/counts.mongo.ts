import { createLruCache, type LruCache } from '#shared/core/lru-cache.ts'
import { tiers, type Tier, type VaultScope } from '#shared/domain/memory.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { partitionIndex, expiryIndex } from '#shared/storage/mongo/indexes.ts'
import { lowestIdAt } from '#shared/core/ids.ts'
import type { Filter } from 'mongodb'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { aggregateDocuments, epochFilter, countDocuments } from '#shared/storage/mongo/commands.ts'

type CountsOfRevision = Pick<VaultScope, 'epoch' | 'revision'> & { counts: Record<Tier, number> }

/** Counting reads the index alone and still takes 50 ms for 100,000 rows: an unchanged vault is counted once. */
const tierCountCaches = new WeakMap<Mongo['memories'], LruCache<CountsOfRevision>>()
const cachedVaultsMax = 10_000

/**
 * How many memories of each tier the core vault holds, as of the scope's revision.
 *
 * @param asOf epoch ms: those of a later time are not counted
 */
export async function countTiers(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  asOf?: number,
): Promise<Record<Tier, number>> {
  if (asOf !== undefined) return readTierCounts(memories, scope, { $lte: new Date(asOf) })
  const { vault, epoch, revision } = scope
  const vaults = tierCountCaches.get(memories) ?? createLruCache<CountsOfRevision>(cachedVaultsMax)
  tierCountCaches.set(memories, vaults)
  const last = vaults.get(vault)
  if (last?.epoch === epoch && last.revision === revision) return last.counts

  const counts = await readTierCounts(memories, scope)

  vaults.set(vault, { epoch, revision, counts })
  return counts
}

async function readTierCounts(
  memories: Mongo['memories'],
  scope: VaultScope,
  at?: { $lte: Date },
): Promise<Record<Tier, number>> {
  const [raw = 0, reflections = 0, high = 0] = await Promise.all(
    tiers.map(tier =>
      countDocuments(
        memories,
        { ...epochFilter(scope), session: { $eq: '' }, tier: { $eq: tier }, ...(at && { at }) },
        { hint: partitionIndex },
      ),
    ),
  )
  return { 1: raw, 2: reflections, 3: high }
}

const countsOfDay = {
  _id: { $dateToString: { date: '$at', format: '%Y-%m-%d' } },
  raw: { $sum: { $cond: [{ $eq: ['$tier', 1] }, 1, 0] } },
  all: { $sum: 1 },
}

type DayCountOptions = {
  /** Sessions of which everything up to an epoch is cleared. */
  clearedSessions: readonly { session: string; upTo: number }[]
  /** The newest days that are answered at most. */
  daysMax: number
}

/** Counts the memories of a vault, sessions included, by the UTC day (`YYYY-MM-DD`) they happened, oldest first. */
export async function countDays(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  { clearedSessions, daysMax }: DayCountOptions,
): Promise<{ day: string; raw: number; reflections: number }[]> {
  const $match = { ...epochFilter(scope), ...notOfCleared(clearedSessions) }
  const days = await aggregateDocuments<{ _id: string; raw: number; all: number }>(
    memories,
    [{ $match }, { $group: countsOfDay }, { $sort: { _id: -1 } }, { $limit: daysMax }],
    { hint: partitionIndex },
  )
  return days.map(({ _id: day, raw, all }) => ({ day, raw, reflections: all - raw })).reverse()
}

const notOfCleared = (sessions: DayCountOptions['clearedSessions']) =>
  sessions.length > 0 && {
    $nor: sessions.map(({ session, upTo }) => ({ session, session_epoch: { $lte: upTo } })),
  }

/** The memories of a session, and the event times of the first and last. */
export type SessionTotals = { memories: number; first: Date; last: Date }

/**
 * How many memories some sessions of a vault hold, and from when; empty sessions are left out. Counting reads
 * one range of an index per session and no documents, except where cleared or expired memories may not be
 * removed yet.
 *
 * @param now epoch milliseconds; memories that have expired by then do not count
 */
export async function sessionTotals(
  mongo: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  sessions: readonly { session: string; epoch: number }[],
  now: number,
): Promise<Map<string, SessionTotals>> {
  if (sessions.length === 0) return new Map()
  const requested = { session: { $in: sessions.map(({ session }) => session) } }
  const expired = { expires_at: { $lte: new Date(now) } }
  const sessionsWithExpired = new Set(
    (await aggregateTotals(mongo, scope, { ...requested, ...expired }, expiryIndex)).map(
      ({ _id }) => _id,
    ),
  )
  const needsNoFilter = ({ session, epoch }: { session: string; epoch: number }): boolean =>
    epoch === 0 && !sessionsWithExpired.has(session)
  const unfilteredSessions = sessions.filter(needsNoFilter).map(({ session }) => session)
  const sums = await Promise.all([
    unfilteredSessions.length > 0
      ? aggregateTotals(mongo, scope, { session: { $in: unfilteredSessions } }, partitionIndex)
      : [],
    ...sessions
      .filter(session => !needsNoFilter(session))
      .map(({ session, epoch }) => {
        const liveOnly = { session_epoch: { $eq: epoch }, expires_at: { $not: expired.expires_at } }
        return aggregateTotals(
          mongo,
          scope,
          { session: { $eq: session }, ...liveOnly },
          partitionIndex,
        )
      }),
  ])
  return new Map(sums.flat().map(({ _id, ...sum }) => [_id, sum]))
}

function aggregateTotals(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  which: Filter<MemoryDocument>,
  hint: string,
): Promise<(SessionTotals & { _id: string })[]> {
  return aggregateDocuments(
    memories,
    [
      { $match: { ...epochFilter(scope), ...which } },
      {
        $group: {
          _id: '$session',
          memories: { $sum: 1 },
          first: { $min: '$at' },
          last: { $max: '$at' },
        },
      },
    ],
    { hint },
  )
}

/** Memories of a vault, sessions included, and how many of them were stored in the last days, today among them. */
export type VaultCounts = { memories: number; stored7Days: number; stored30Days: number }

const dayMs = 24 * 3_600_000

/** By vault, epoch, revision and day: an unchanged vault is counted once a day. */
const vaultCountCaches = new WeakMap<Mongo['memories'], LruCache<VaultCounts>>()

/**
 * Counts the memories of a vault. It reads one range of an index and no documents, except where something is gone
 * and not removed yet.
 *
 * @param now epoch ms; days are UTC
 */
export async function countVault(
  { memories }: Pick<Mongo, 'memories'>,
  countableVault: Pick<VaultScope, 'vault' | 'epoch' | 'revision'> & {
    clearedSessions: DayCountOptions['clearedSessions']
    /** Some of its memories have expired. */
    hasExpired: boolean
  },
  now: number,
): Promise<VaultCounts> {
  const { vault, epoch, revision, clearedSessions, hasExpired } = countableVault
  const cache = vaultCountCaches.get(memories) ?? createLruCache<VaultCounts>(cachedVaultsMax)
  vaultCountCaches.set(memories, cache)
  const midnight = now - (now % dayMs)
  const name = `${vault} ${epoch} ${revision} ${midnight}`
  const last = hasExpired ? undefined : cache.get(name)
  if (last) return last
  // The id of a memory begins with the time at which it was accepted.
  const storedIn = (days: number) => ({
    $sum: { $cond: [{ $gte: ['$_id', lowestIdAt(midnight - (days - 1) * dayMs)] }, 1, 0] },
  })
  const $match = {
    ...epochFilter({ vault, epoch }),
    ...(hasExpired && { expires_at: { $not: { $lte: new Date(now) } } }),
    ...notOfCleared(clearedSessions),
  }
  const $group = {
    _id: null,
    memories: { $sum: 1 },
    stored7Days: storedIn(7),
    stored30Days: storedIn(30),
  }
  const [row] = await aggregateDocuments<VaultCounts>(memories, [{ $match }, { $group }], {
    hint: partitionIndex,
  })
  const { memories: all = 0, stored7Days = 0, stored30Days = 0 } = row ?? {}
  const counts = { memories: all, stored7Days, stored30Days }
  cache.set(name, counts)
  return counts
}
