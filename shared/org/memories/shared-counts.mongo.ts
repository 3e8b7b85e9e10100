import type { VaultEpoch } from '#shared/domain/memory.ts'
import { aggregateDocuments, epochFilter } from '#shared/storage/mongo/commands.ts'
import type { MemoryCollection } from '#shared/storage/mongo/connect.ts'
import { partitionIndex, reviewIndex, tagSetIndex } from '#shared/storage/mongo/indexes.ts'
import { pendingPartition, reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'

/** How many shared memories with a set of tags were said on a UTC day, `YYYY-MM-DD`. */
export type TagSetDay = { tagSet: string; day: string; memories: number }

const byTagSetAndDay = {
  _id: { tagSet: '$tag_set', day: { $dateToString: { date: '$at', format: '%Y-%m-%d' } } },
  memories: { $sum: 1 },
}

/** 100,000 memories take half a second on one core; a larger team that asks for years may wait. */
const countMs = 20_000

/**
 * Counts the shared memories by their tags and the day their words were said, from a moment on. Those that wait for a
 * person, unseen by members, count too.
 *
 * @param from epoch milliseconds
 */
export const countTagSetDays = (
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  from: number,
): Promise<TagSetDay[]> =>
  // A bound of the tag set, where `$exists` would read each document with its vectors: the index alone answers.
  grouped(
    memories,
    { ...epochFilter(scope), tag_set: { $gte: '' }, at: { $gte: new Date(from) } },
    tagSetIndex,
  )

/** Counts the memories that wait for a person, unseen by members, by their tags and day. */
export const countPendingTagSetDays = (
  { memories }: MemoryCollection,
  scope: VaultEpoch,
): Promise<TagSetDay[]> =>
  grouped(memories, { ...epochFilter(scope), session: { $eq: pendingPartition } }, partitionIndex)

async function grouped(
  memories: MemoryCollection['memories'],
  $match: object,
  hint: string,
): Promise<TagSetDay[]> {
  const rows = await aggregateDocuments<{
    _id: { tagSet: string; day: string }
    memories: number
  }>(memories, [{ $match }, { $group: byTagSetAndDay }], { hint }, countMs)
  return rows.map(({ _id, memories: count }) => ({ ..._id, memories: count }))
}

/** The review queue as it is listed without a threshold: how long it is, and the oldest time of its words. */
export async function countReviewQueue(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
): Promise<{ waiting: number; oldestAt: Date | null }> {
  const [queue] = await aggregateDocuments<{ waiting: number; oldestAt: Date }>(
    memories,
    [
      {
        $match: {
          ...epochFilter(scope),
          reviewed: { $eq: false },
          confidence: { $lt: reviewThreshold },
        },
      },
      { $group: { _id: null, waiting: { $sum: 1 }, oldestAt: { $min: '$at' } } },
    ],
    { hint: reviewIndex },
    countMs,
  )
  return { waiting: queue?.waiting ?? 0, oldestAt: queue?.oldestAt ?? null }
}
