import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

/** A UTC day as `YYYY-MM-DD`, and how many memories happened on it. */
export type DayCount = { day: string; raw: number; reflections: number }

type DayRow = { _id: string; raw: number; all: number }

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

/**
 * Counts the memories of a vault, sessions included, by the day they happened, oldest first; days without
 * any are left out.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function countDays(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: VaultScope,
  { clearedSessions, daysMax }: DayCountOptions,
): Promise<DayCount[]> {
  const cleared = clearedSessions.map(({ session, upTo }) => ({
    session,
    session_epoch: { $lte: upTo },
  }))
  const $match = {
    vault: { $eq: vault },
    epoch: { $eq: epoch },
    ...(cleared.length > 0 && { $nor: cleared }),
  }
  const days = await memories
    .aggregate<DayRow>(
      [{ $match }, { $group: countsOfDay }, { $sort: { _id: -1 } }, { $limit: daysMax }],
      { hint: partitionIndex, signal: deadline(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return days.map(({ _id: day, raw, all }) => ({ day, raw, reflections: all - raw })).reverse()
}
