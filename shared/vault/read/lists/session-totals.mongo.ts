import type { Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { expiryIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'

/** The memories of a session, and the event times of the first and last. */
export type SessionTotals = { memories: number; first: Date; last: Date }

/** A session, and how many times it was cleared. */
type SessionEpoch = { session: string; epoch: number }

/**
 * How many memories some sessions of a vault hold, and from when. Counting reads one range of an index per
 * session and no documents, except where memories that are cleared or expired may not be removed yet and
 * must be left out.
 *
 * @param now epoch milliseconds; memories that have expired by then do not count
 * @returns totals by session, without empty sessions
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function sessionTotals(
  mongo: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  sessions: readonly SessionEpoch[],
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
      { hint, signal: deadline(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
}
