import type { Query } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf, jobNames } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/queue.ts'

export type QueueDepth = {
  queue: string
  /** Due now, or waiting for a further try. */
  waiting: number
  active: number
  /** Given up, in the dead-letter queue. */
  dead: number
  /** Seconds since the oldest job that is due could have begun; 0 when none is. */
  oldestSeconds: number
}

/** How much work of each kind there is, in the order of the queue board. */
export async function readQueueDepths(query: Query): Promise<QueueDepth[]> {
  const { rows } = await query<{ name: string; waiting: number; active: number; oldest: number }>(
    `select name,
            count(*) filter (where state < 'active')::int as waiting,
            count(*) filter (where state = 'active')::int as active,
            coalesce(extract(epoch from now() - min(start_after)
              filter (where state < 'active' and start_after <= now())), 0)::float8 as oldest
     from ${pgBossSchema}.job where state <= 'active' group by name`,
  )
  const found = new Map(rows.map(row => [row.name, row]))
  return jobNames.map(queue => {
    const { waiting = 0, active = 0, oldest = 0 } = found.get(queue) ?? {}
    const dead = found.get(deadLetterQueueOf(queue))?.waiting ?? 0
    return { queue, waiting, active, dead, oldestSeconds: oldest }
  })
}
