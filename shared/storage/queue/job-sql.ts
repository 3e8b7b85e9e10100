import type { JobName } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

/** Ends the notice of a job for which a request waits. */
export const awaitedMark = '!'

/**
 * SQL of the with-clauses `sent` and `notified`, which insert jobs of one queue as pg-boss does and, at the commit, wake
 * a worker for those that are due. The statement has to read `notified`. A job whose id exists, or that the policy of
 * the queue does not take, is left out.
 *
 * pg-boss inserts jobs by a statement of its own alone. Here their payloads can be made of what the statement writes
 * besides: accepting an exchange is one round trip instead of three.
 *
 * @param jobs a table of `id uuid, data jsonb, priority int, key text, "group" text` and `after float8`, in seconds
 * @param isAwaited a condition in SQL: a request waits for one of them, so that they do not linger
 */
export const insertedJobsSql = (
  name: JobName,
  jobs: string,
  isAwaited = 'false',
): string => `sent as (
    insert into ${pgBossSchema}.job (id, name, data, priority, start_after, created_on, singleton_key, group_id,
      expire_seconds, deletion_seconds, keep_until, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy,
      dead_letter, heartbeat_seconds)
    select j.id, '${name}', j.data, j.priority, at.start, now(), j.key, j."group", q.expire_seconds,
           q.deletion_seconds, at.start + q.retention_seconds * interval '1 second', q.retry_limit, q.retry_delay,
           coalesce(q.retry_backoff, false), q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds
    from ${jobs} j
    -- A queue that does not exist is an error, not a job that is lost.
    left join ${pgBossSchema}.queue q on q.name = '${name}',
    lateral (select now() + make_interval(secs => coalesce(j.after, 0)) as start) at
    on conflict do nothing
    returning start_after
  ), notified as (
    select pg_notify('pgboss_' || left(encode(sha224('${pgBossSchema}'::bytea), 'hex'), 24),
      '${name}' || case when ${isAwaited} then '${awaitedMark}' else '' end)
    from sent where start_after <= now() limit 1
  )`

/**
 * SQL that removes running jobs: they have ended when, and only when, the transaction commits. One that another
 * worker has taken since is left to it. A removed job costs a third of one that is kept for a minute.
 *
 * @param jobs a table of their ids and claims
 */
export const endedJobsSql = (name: JobName, jobs: string): string =>
  `delete from ${pgBossSchema}.job job using ${jobs} ended
   where job.name = '${name}' and job.id = ended.id and job.state = 'active'
     and job.retry_count = ended.claim
   returning job.id`
