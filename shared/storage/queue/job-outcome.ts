import type { JobResult, JobWithMetadata, PgBoss } from 'pg-boss'
import type { JobName, Outage } from '#shared/domain/jobs.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

/** The job runs again after so many seconds; no try is used up. */
export type Snooze = { snoozeSeconds: number; outage?: Outage }

/**
 * How a try ended. `retry` uses up a try; `cancel` moves the job to the dead-letter queue at once, as a
 * failure of the last try does. `isRemoved`: `Queue.complete` has ended the job.
 */
export type JobOutcome = { id: string } & (
  | { status: 'done'; isRemoved?: boolean }
  | { status: 'retry' | 'cancel'; error: string }
  | ({ status: 'snooze' } & Snooze)
)

/**
 * The job waits for what it needs: `HeldJobs` makes it due when that answers. It comes again by itself after
 * 10 to 15 minutes, as 10,000 waiting jobs are 13 a second then; after 15 to 45 seconds where no process would find out.
 */
export const holdFor = (id: string, outage: Outage): JobOutcome => ({
  id,
  status: 'snooze',
  snoozeSeconds: outage.isAway ? 600 + 300 * Math.random() : 15 + 30 * Math.random(),
  outage,
})

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
      ? [
          {
            id: outcome.id,
            claim: claims.get(outcome.id),
            seconds: outcome.snoozeSeconds,
            ...(outcome.outage && { held: toHeldOutput(outcome.outage) }),
          },
        ]
      : [],
  )
  if (snoozed.length === 0) return
  await boss.getDb().executeSql(
    `update ${pgBossSchema}.job j
     set state = 'created', retry_limit = retry_limit + 1, heartbeat_on = null,
         start_after = now() + make_interval(secs => s.seconds),
         output = case when s.held is not null then s.held
                       when j.output->>'waitsFor' is null then j.output end
     from jsonb_to_recordset($2::jsonb) as s(id uuid, claim int, seconds float8, held jsonb)
     where j.name = $1 and j.id = s.id and j.retry_count = s.claim and j.state = 'active'`,
    [name, JSON.stringify(snoozed)],
  )
}

/** As pages and scripts show why a job has not ended, and as `HeldJobs` finds it. */
const toHeldOutput = ({ dependency, reason }: Outage) => ({
  waitsFor: dependency,
  message: `${dependency}: ${reason}`,
})
