import type { Query } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf, jobNames, type JobName } from '#shared/domain/jobs.ts'
import { createIdleBoss, pgBossSchema } from '#shared/storage/queue/queue.ts'

/** One queue as it is at this moment. */
export type QueueStats = {
  name: JobName
  /** Ready, or for later. */
  waiting: number
  /** Failed at least once and waiting for another try. */
  retrying: number
  active: number
  /** Given up, until somebody takes them up again. */
  dead: number
  /** How long the oldest that is ready has been waiting, in seconds; null when none is. */
  oldestSeconds: number | null
  /** How long the one that has been at work longest has been, in seconds. */
  longestSeconds: number | null
}

/** Every queue of the board, in its order. */
export async function readQueueStats(query: Query): Promise<QueueStats[]> {
  const { rows } = await query<Omit<QueueStats, 'dead'>>(
    `select name,
            count(*) filter (where state = 'created')::int as waiting,
            count(*) filter (where state = 'retry')::int as retrying,
            count(*) filter (where state = 'active')::int as active,
            floor(extract(epoch from now() - min(greatest(created_on, start_after))
              filter (where state in ('created', 'retry') and start_after <= now())))::int
              as "oldestSeconds",
            floor(extract(epoch from now() - min(started_on) filter (where state = 'active')))::int
              as "longestSeconds"
     from ${pgBossSchema}.job where state < 'completed' group by name`,
  )
  const byName = new Map<string, (typeof rows)[number]>(rows.map(row => [row.name, row]))
  const idle = { waiting: 0, retrying: 0, active: 0, oldestSeconds: null, longestSeconds: null }
  return jobNames.map(name => ({
    ...idle,
    ...byName.get(name),
    name,
    dead: byName.get(deadLetterQueueOf(name))?.waiting ?? 0,
  }))
}

export type DeadLetter = {
  id: string
  queue: JobName
  diedAt: Date
  tries: number
  /** What the last try failed of. */
  error: string
}

/** Dead letters of a queue, oldest first. What they carry is not shown: it holds people's words. */
export async function listDeadLetters(
  query: Query,
  name: JobName,
  limit: number,
): Promise<DeadLetter[]> {
  const { rows } = await query<Omit<DeadLetter, 'queue'>>(
    `select id, created_on as "diedAt", coalesce(source_retry_count, 0)::int + 1 as tries,
            coalesce(source_output->>'message', output->>'message', '') as error
     from ${pgBossSchema}.job where name = $1 and state < 'active' order by created_on, id limit $2`,
    [deadLetterQueueOf(name), limit],
  )
  return rows.map(row => ({ ...row, queue: name }))
}

/**
 * Puts dead letters back into their queue, oldest first, with all their tries before them; those whose
 * work was done after all do nothing.
 *
 * @param ids these alone
 * @returns how many were put back.
 */
export async function redriveDeadLetters(
  databaseUrl: string,
  name: JobName,
  { ids, limit }: { ids?: readonly string[]; limit: number },
): Promise<number> {
  const boss = createIdleBoss(databaseUrl)
  boss.on('error', () => {})
  await boss.start()
  try {
    let moved = 0
    while (moved < limit) {
      const batch = await boss.redrive(deadLetterQueueOf(name), {
        limit: Math.min(1_000, limit - moved),
        ...(ids && { ids: [...ids] }),
      })
      moved += batch
      if (batch === 0) break
    }
    return moved
  } finally {
    await boss.stop({ graceful: false })
  }
}

/**
 * Removes the jobs of an id, or of the operation of this id, dead letters included, in the caller's
 * transaction.
 *
 * @returns the operations they belonged to, or how many of them are at work, and then nothing is gone.
 */
export async function deleteJobs(
  query: Query,
  id: string,
): Promise<{ active: number; removed: number; operations: string[] }> {
  const { rows } = await query<{ active: number; removed: number; operations: string[] }>(
    `with asked as (
       select coalesce(data->>'operation', data->>'turn', id::text) as operation
       from ${pgBossSchema}.job where id = $1::uuid and state < 'completed'
       union select ($1::uuid)::text
     ), theirs as (
       select id, name, state, coalesce(data->>'operation', data->>'turn', id::text) as operation
       from ${pgBossSchema}.job
       where state < 'completed' and name = any($2)
         and coalesce(data->>'operation', data->>'turn', id::text) in (select operation from asked)
       for update
     ), gone as (
       delete from ${pgBossSchema}.job j using theirs t
       where j.id = t.id and j.name = t.name
         and not exists (select from theirs where state = 'active')
       returning t.operation
     )
     select (select count(*)::int from theirs where state = 'active') as active,
            (select count(*)::int from gone) as removed,
            (select coalesce(array_agg(distinct operation), '{}') from gone) as operations`,
    [id, jobNames.flatMap(name => [name, deadLetterQueueOf(name)])],
  )
  return rows[0]!
}
