import type { Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { expiryIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'

/** What a session holds; event times. */
export type SessionTotals = { memories: number; first: Date; last: Date }

/** A session, and how often it was cleared. */
type SessionEpoch = { session: string; epoch: number }

/**
 * How many memories some sessions of a vault hold, and from when. Counting goes by one range of an index
 * for each session and reads no memory, but where some are not removed yet that have to be told from the
 * others: the session was cleared before, or some of it is over.
 *
 * @param now epoch milliseconds; what is over by then does not count
 * @returns those that hold something, by session.
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function sessionTotals(
  mongo: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  sessions: readonly SessionEpoch[],
  now: number,
): Promise<Map<string, SessionTotals>> {
  if (sessions.length === 0) return new Map()
  const asked = { session: { $in: sessions.map(({ session }) => session) } }
  const expired = { expires_at: { $lte: new Date(now) } }
  const sessionsWithExpired = new Set(
    (await aggregateTotals(mongo, scope, { ...asked, ...expired }, expiryIndex)).map(
      ({ _id }) => _id,
    ),
  )
  const needsNoFilter = ({ session, epoch }: SessionEpoch): boolean =>
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
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
  which: Filter<MemoryDocument>,
  hint: string,
): Promise<(SessionTotals & { _id: string })[]> {
  return memories
    .aggregate<SessionTotals & { _id: string }>(
      [
        { $match: { vault: { $eq: vault }, epoch: { $eq: epoch }, ...which } },
        {
          $group: {
            _id: '$session',
            memories: { $sum: 1 },
            first: { $min: '$at' },
            last: { $max: '$at' },
          },
        },
      ],
      { hint, signal: AbortSignal.timeout(deadlineMs) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
}
