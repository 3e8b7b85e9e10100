import type { Query } from '#shared/storage/postgres/connect.ts'
import {
  deadLetterQueueOf,
  jobNames,
  uncancellableJobs,
  type JobName,
} from '#shared/domain/jobs.ts'
import { createIdleBoss, pgBossSchema } from '#shared/storage/queue/boss.ts'

export type DeadLetter = {
  id: string
  queue: JobName
  diedAt: Date
  tries: number
  /** Why the last try failed. */
  error: string
}

/** Dead letters of a queue, oldest first, without their payloads, which hold content. */
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
 * Puts dead letters back into their queue, oldest first, with all their tries. Jobs whose work is done
 * already do nothing.
 *
 * @param ids when given, only these
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

type DeletedJobs = {
  /** How many of the jobs are running, and how many finish what must be finished (`uncancellableJobs`). */
  active: number
  uncancellable: number
  removed: number
  /** The operations of those that were removed. */
  operations: string[]
  /** The memories that removed jobs were to store, by operation. */
  memories: { operation: string; vault: string; ids: string[] }[]
}

/**
 * Removes the job with an id and all jobs of its operation, dead letters included, in the caller's
 * transaction. Nothing is removed while one of them is running, or cannot be cancelled.
 */
export async function deleteJobs(query: Query, id: string): Promise<DeletedJobs> {
  const { rows } = await query<DeletedJobs>(
    `with wanted as (
       select coalesce(data->>'operation', data->>'turn', id::text) as operation
       from ${pgBossSchema}.job where id = $1::uuid and state < 'completed'
       union select ($1::uuid)::text
     ), matching as (
       select id, name, state, data, coalesce(data->>'operation', data->>'turn', id::text) as operation
       from ${pgBossSchema}.job
       where state < 'completed' and name = any($2)
         and coalesce(data->>'operation', data->>'turn', id::text) in (select operation from wanted)
       for update
     ), removed as (
       delete from ${pgBossSchema}.job j using matching m
       where j.id = m.id and j.name = m.name
         and not exists (select from matching where state = 'active' or name = any($3))
       returning m.operation, m.data
     )
     select (select count(*) from matching where state = 'active') as active,
            (select count(*) from matching where name = any($3)) as uncancellable,
            (select count(*) from removed) as removed,
            (select coalesce(array_agg(distinct operation), '{}') from removed) as operations,
            (select coalesce(json_agg(json_build_object(
               'operation', operation, 'vault', data->>'vault',
               'ids', jsonb_path_query_array(data, '$.memories[*].id'))), '[]')
             from removed where data ? 'memories') as memories`,
    [id, withDeadLetters(jobNames), withDeadLetters(uncancellableJobs)],
  )
  return rows[0]!
}

const withDeadLetters = (names: readonly JobName[]): string[] =>
  names.flatMap(name => [name, deadLetterQueueOf(name)])
