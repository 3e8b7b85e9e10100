import type { Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { deadlineMs, refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { byExpiry, byPlace } from '#shared/storage/mongo/indexes.ts'

/** What a session holds; event times. */
export type SessionSum = { memories: number; first: Date; last: Date }

/** A session, and how often it was cleared. */
type Session = { session: string; epoch: number }

/**
 * How many memories some sessions of a vault hold, and from when. Counting goes by one range of an index
 * for each session and reads no memory, but where some are not removed yet that have to be told from the
 * others: the session was cleared before, or some of it is over.
 *
 * @param now epoch milliseconds; what is over by then does not count
 * @returns those that hold something, by session.
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function sessionSums(
  mongo: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  sessions: readonly Session[],
  now: number,
): Promise<Map<string, SessionSum>> {
  if (sessions.length === 0) return new Map()
  const asked = { session: { $in: sessions.map(({ session }) => session) } }
  const over = { expires_at: { $lte: new Date(now) } }
  const mixed = new Set(
    (await sumsOf(mongo, scope, { ...asked, ...over }, byExpiry)).map(({ _id }) => _id),
  )
  const isPlain = ({ session, epoch }: Session): boolean => epoch === 0 && !mixed.has(session)
  const plain = sessions.filter(isPlain).map(({ session }) => session)
  const sums = await Promise.all([
    plain.length > 0 ? sumsOf(mongo, scope, { session: { $in: plain } }, byPlace) : [],
    ...sessions
      .filter(session => !isPlain(session))
      .map(({ session, epoch }) => {
        const living = { session_epoch: { $eq: epoch }, expires_at: { $not: over.expires_at } }
        return sumsOf(mongo, scope, { session: { $eq: session }, ...living }, byPlace)
      }),
  ])
  return new Map(sums.flat().map(({ _id, ...sum }) => [_id, sum]))
}

function sumsOf(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
  which: Filter<MemoryDocument>,
  hint: string,
): Promise<(SessionSum & { _id: string })[]> {
  return memories
    .aggregate<SessionSum & { _id: string }>(
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
