import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf, type JobName, type JobPayloads } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/queue.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'

/** Jobs whose payloads hold nobody's words and that end by themselves, whatever was cleared. */
const jobsWithoutContent: readonly JobName[] = ['clear', 'delete-ids', 'account-erase', 'sweep']

export type RemovedJobs = {
  /** How many were removed. */
  removed: number
  /** The operations they belonged to. */
  operations: string[]
  /** How many a worker holds at this moment: they end without being seen, or fail and wait. */
  active: number
}

/**
 * Removes the jobs that were to store into what was cleared: waiting ones, finished ones and dead
 * letters, whose payloads hold what people said. Those a worker holds are left to it and counted.
 *
 * Payloads tell the `epoch` they are for, and those of a session its `session` and `sessionEpoch`.
 *
 * @param operations whose jobs are void too, though their payloads do not tell.
 */
export async function removeClearedJobs(
  { query }: Transaction,
  { vault, session, upTo }: ClearedRange,
  operations: readonly string[],
): Promise<RemovedJobs> {
  const { rows } = await query<RemovedJobs>(
    `with void as (
       select id, name, state, coalesce(data->>'operation', id::text) as operation
       from ${pgBossSchema}.job
       where data->>'vault' = $1 and not name = any($4)
         and (case when $2::text is null then (data->>'epoch')::int <= $3
                   else data->>'session' = $2
                        and coalesce((data->>'sessionEpoch')::int, 0) <= $3 end
              or data->>'operation' = any($5))
     ), gone as (
       delete from ${pgBossSchema}.job j using void v
       where j.id = v.id and j.name = v.name and j.state <> 'active' returning v.operation
     )
     select (select count(*)::int from gone) as removed,
            (select count(*)::int from void where state = 'active') as active,
            (select coalesce(array_agg(distinct operation), '{}') from gone) as operations`,
    [
      vault,
      session,
      upTo,
      jobsWithoutContent.flatMap(name => [name, deadLetterQueueOf(name)]),
      operations,
    ],
  )
  return rows[0]!
}

/** Those of the given operations that no job works for any more, waiting or running. */
export async function operationsWithoutJob(
  query: Query,
  operations: readonly string[],
): Promise<string[]> {
  const { rows: alone } = await query<{ id: string }>(
    `select o.id from unnest($1::uuid[]) as o(id)
     where not exists (select from ${pgBossSchema}.job j where j.id = o.id and j.state < 'completed')`,
    [operations],
  )
  if (alone.length === 0) return []
  // Work in several jobs names its operation inside them; reading payloads is slow, so only now.
  const { rows } = await query<{ id: string }>(
    `select o.id from unnest($1::text[]) as o(id)
     where o.id not in (select data->>'operation' from ${pgBossSchema}.job
                        where state < 'completed' and data->>'operation' is not null)`,
    [alone.map(({ id }) => id)],
  )
  return rows.map(({ id }) => id)
}

/** What a job carries, dead or not; undefined once it is done and gone. */
export async function findJobPayload<Name extends JobName>(
  query: Query,
  name: Name,
  id: string,
): Promise<JobPayloads[Name] | undefined> {
  const { rows } = await query<{ data: JobPayloads[Name] }>(
    `select data from ${pgBossSchema}.job where name = any($1) and id = $2 limit 1`,
    [[name, deadLetterQueueOf(name)], id],
  )
  return rows[0]?.data
}
