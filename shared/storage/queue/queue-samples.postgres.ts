import { jobNames, type JobName } from '#shared/domain/jobs.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'

/** Seconds from one sample to the next. */
const sampleSeconds = 300
const keptHours = 48

/**
 * Keeps the depth of each queue once in five minutes, and drops what is older than two days.
 *
 * @param now epoch milliseconds
 * @returns how many samples were kept: none when those of these five minutes are there.
 */
export async function sampleQueues(query: Query, now: number): Promise<number> {
  const at = new Date(now - (now % (sampleSeconds * 1000)))
  const { rows } = await query('select from queue_samples where at = $1 limit 1', [at])
  if (rows.length > 0) return 0
  const queues = await readQueueStats(query)
  const { rowCount } = await query(
    `with old as (delete from queue_samples where at < $1::timestamptz - make_interval(hours => $2))
     insert into queue_samples (at, queue, waiting, active, dead, oldest_seconds)
     select $1, s.* from jsonb_to_recordset($3) as
       s(queue text, waiting int, active int, dead int, oldest int)
     on conflict do nothing`,
    [
      at,
      keptHours,
      JSON.stringify(
        queues.map(({ name, waiting, retrying, active, dead, oldestSeconds }) => ({
          queue: name,
          waiting: waiting + retrying,
          active,
          dead,
          oldest: oldestSeconds,
        })),
      ),
    ],
  )
  return rowCount
}

type Sample = { waiting: number; active: number; dead: number; oldestSeconds: number }

/** The samples of each queue of the board: as many as there are times, in their order. */
export type QueueHistory = { at: Date[]; queues: { name: JobName; samples: Sample[] }[] }

const noSample: Sample = { waiting: 0, active: 0, dead: 0, oldestSeconds: 0 }

/** The samples since a time. A time without a sample of a queue counts as none of its jobs. */
export async function readQueueHistory(query: Query, since: Date): Promise<QueueHistory> {
  const { rows } = await query<Sample & { at: Date; queue: string }>(
    `select at, queue, waiting, active, dead, coalesce(oldest_seconds, 0) as "oldestSeconds"
     from queue_samples where at >= $1 order by at`,
    [since],
  )
  const byTime = Map.groupBy(rows, ({ at }) => at.getTime())
  const times = [...byTime.values()].map(
    samples => new Map(samples.map(sample => [sample.queue, sample])),
  )
  return {
    at: [...byTime.keys()].map(at => new Date(at)),
    queues: jobNames.map(name => ({
      name,
      samples: times.map(samples => samples.get(name) ?? noSample),
    })),
  }
}
