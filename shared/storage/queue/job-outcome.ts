import type { JobResult, JobWithMetadata, PgBoss } from 'pg-boss'
import type { JobName } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

/** The job runs again after so many seconds; no try is used up. */
export type Snooze = { snoozeSeconds: number }

/**
 * How a try ended. `retry` uses up a try; `cancel` moves the job to the dead-letter queue at once, as a
 * failure of the last try does. `isRemoved`: `Queue.complete` has ended the job.
 */
export type JobOutcome = { id: string } & (
  | { status: 'done'; isRemoved?: boolean }
  | { status: 'retry' | 'cancel'; error: string }
  | ({ status: 'snooze' } & Snooze)
)

export const hasFailed = ({ status }: JobOutcome): boolean =>
  status === 'retry' || status === 'cancel'

/** Empty for a snoozed job, which `snoozeJobs` has settled. */
export function toJobResult(outcome: JobOutcome): JobResult[] {
  const { id, status } = outcome
  if (status === 'snooze') return []
  if (status === 'done') return [{ id, status: 'completed' }]
  const output = { message: outcome.error }
  return [{ id, status: status === 'cancel' ? 'deadletter' : 'failed', output }]
}

/**
 * Reschedules the snoozed jobs of a batch. pg-boss has no snooze: as in Oban, the limit of tries is raised
 * by the one that was used. A job that another worker has claimed since is left alone.
 */
export async function snoozeJobs(
  boss: PgBoss,
  name: JobName,
  batch: readonly JobWithMetadata<unknown>[],
  outcomes: readonly JobOutcome[],
): Promise<void> {
  const claims = new Map(batch.map(({ id, retryCount }) => [id, retryCount]))
  const snoozed = outcomes.flatMap(outcome =>
    outcome.status === 'snooze'
      ? [{ id: outcome.id, claim: claims.get(outcome.id), seconds: outcome.snoozeSeconds }]
      : [],
  )
  if (snoozed.length === 0) return
  await boss.getDb().executeSql(
    `update ${pgBossSchema}.job j
     set state = 'created', retry_limit = retry_limit + 1, heartbeat_on = null,
         start_after = now() + make_interval(secs => s.seconds)
     from jsonb_to_recordset($2::jsonb) as s(id uuid, claim int, seconds float8)
     where j.name = $1 and j.id = s.id and j.retry_count = s.claim and j.state = 'active'`,
    [name, JSON.stringify(snoozed)],
  )
}
