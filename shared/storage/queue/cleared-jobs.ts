import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { deadLetterQueueOf, type JobName, type JobPayloads } from '#shared/domain/jobs.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

/** Jobs whose payloads hold no content and that end by themselves, whatever was cleared. */
const jobsWithoutContent: readonly JobName[] = ['clear', 'delete-ids', 'account-erase', 'sweep']

export type RemovedJobs = {
  /** How many were removed. */
  removed: number
  /** The operations they belonged to. */
  operations: string[]
  /** How many are running: they end without effect, or fail and wait. */
  active: number
}

/**
 * Removes the jobs that were to store into what was cleared: waiting ones, finished ones and dead
 * letters, since their payloads hold content. Running ones are counted and left alone.
 *
 * Payloads have the `epoch` they are for, and those of a session its `session` and `sessionEpoch`.
 *
 * @param operations whose jobs are removed too, though their payloads have no epoch.
 */
export async function removeClearedJobs(
  { query }: Transaction,
  { vault, session, upTo, vaultEpoch }: ClearedRange,
  operations: readonly string[],
): Promise<RemovedJobs> {
  const { rows } = await query<RemovedJobs>(
    `with cleared as (
       select id, name, state, coalesce(data->>'operation', id::text) as operation
       from ${pgBossSchema}.job
       where data->>'vault' = $1 and not name = any($4)
         and (case when $2::text is null then (data->>'epoch')::int <= $3
                   else data->>'session' = $2
                        and coalesce((data->>'sessionEpoch')::int, 0) <= $3
                        and (data->>'epoch')::int <= $6 end
              or data->>'operation' = any($5))
     ), removed as (
       delete from ${pgBossSchema}.job j using cleared c
       where j.id = c.id and j.name = c.name and j.state <> 'active' returning c.operation
     )
     select (select count(*) from removed) as removed,
            (select count(*) from cleared where state = 'active') as active,
            (select coalesce(array_agg(distinct operation), '{}') from removed) as operations`,
    [
      vault,
      session,
      upTo,
      jobsWithoutContent.flatMap(name => [name, deadLetterQueueOf(name)]),
      operations,
      vaultEpoch,
    ],
  )
  return rows[0]!
}

/** Those of the given operations that have no waiting or running job. */
export async function operationsWithoutJob(
  query: Query,
  operations: readonly string[],
): Promise<string[]> {
  const { rows: candidates } = await query<{ id: string }>(
    `select o.id from unnest($1::uuid[]) as o(id)
     where not exists (select from ${pgBossSchema}.job j where j.id = o.id and j.state < 'completed')`,
    [operations],
  )
  if (candidates.length === 0) return []
  // Jobs of a divided operation have it in their payload; reading payloads is slow, so only for these.
  const { rows } = await query<{ id: string }>(
    `select o.id from unnest($1::text[]) as o(id)
     where o.id not in (select data->>'operation' from ${pgBossSchema}.job
                        where state < 'completed' and data->>'operation' is not null)`,
    [candidates.map(({ id }) => id)],
  )
  return rows.map(({ id }) => id)
}

/** The payload of a job or dead letter; undefined once it is removed. */
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
