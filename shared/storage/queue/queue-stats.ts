import type { Query } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf, jobNames, type JobName } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

/** One queue as it is at this moment. */
export type QueueStats = {
  name: JobName
  /** Due, or for later. */
  waiting: number
  /** Those of them that wait for something that does not answer, and use up no try. */
  held: number
  /** One of what they wait for: `mongodb`, or an embedding model; null where none is held. */
  waitsFor: string | null
  /** Failed at least once and waiting for another try. */
  retrying: number
  active: number
  /** Given up, in the dead-letter queue. */
  dead: number
  /** Seconds since the oldest job that is due could have begun; null when none is. */
  oldestSeconds: number | null
  /** Seconds since the longest-running job began; null when none runs. */
  longestSeconds: number | null
}

const idle = {
  waiting: 0,
  held: 0,
  waitsFor: null,
  retrying: 0,
  active: 0,
  oldestSeconds: null,
  longestSeconds: null,
}

const isHeldSql = `state = 'created' and start_after > now() and output->>'waitsFor' is not null`

/** Every queue of the board, in its order. */
export async function readQueueStats(query: Query): Promise<QueueStats[]> {
  const { rows } = await query<Omit<QueueStats, 'name' | 'dead'> & { name: string }>(
    `select name,
            count(*) filter (where state = 'created') as waiting,
            count(*) filter (where ${isHeldSql}) as held,
            max(output->>'waitsFor') filter (where ${isHeldSql}) as "waitsFor",
            count(*) filter (where state = 'retry') as retrying,
            count(*) filter (where state = 'active') as active,
            floor(extract(epoch from now() - min(greatest(created_on, start_after))
              filter (where state in ('created', 'retry') and start_after <= now())))::int
              as "oldestSeconds",
            floor(extract(epoch from now() - min(started_on) filter (where state = 'active')))::int
              as "longestSeconds"
     from ${pgBossSchema}.job where state < 'completed' group by name`,
  )
  const byName = new Map(rows.map(row => [row.name, row]))
  return jobNames.map(name => ({
    ...idle,
    ...byName.get(name),
    name,
    dead: byName.get(deadLetterQueueOf(name))?.waiting ?? 0,
  }))
}
