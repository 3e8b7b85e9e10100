import { PgBoss, type JobResult, type JobWithMetadata } from 'pg-boss'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'
import { jobSeconds } from '#shared/core/metrics.ts'
import { withSpan } from '#shared/core/trace.ts'
import { refuseWhenUnreachable, type Transaction } from '#shared/storage/postgres/connect.ts'
import {
  deadLetterQueueOf,
  jobNames,
  jobOptions,
  retryPolicy,
  type JobName,
  type JobPayloads,
} from '#shared/domain/jobs.ts'

export type NewJob<Name extends JobName> = {
  /** The operation's UUIDv7: sending it twice sends it once. */
  id: string
  data: JobPayloads[Name]
  /** Jobs of one vault wait behind those of vaults with less waiting: minus the vault's pending jobs. */
  priority: number
  /** What a queue's policy counts by, such as the vault: see `policy` on the board. */
  key?: string
  /** Not before so many seconds from now. */
  afterSeconds?: number
}

export type Job<Name extends JobName> = {
  id: string
  data: JobPayloads[Name]
  /** Aborted when the claim is lost, or when the process must stop. */
  signal: AbortSignal
  /** An earlier try may have done part of it. */
  isRetry: boolean
  /** No further try follows this one. */
  isLastTry: boolean
}

export type JobOutcome = { id: string; done: true } | { id: string; done: false; error: string }

export type Queue = {
  /** Enqueues in the caller's transaction: the jobs exist when, and only when, it commits. */
  send<Name extends JobName>(tx: Transaction, name: Name, promised: NewJob<Name>[]): Promise<void>
  /**
   * Removes the waiting jobs of an operation: the one that has its id, and those that carry it in
   * `data.operation`. False, with nothing settled, when one has begun: roll back then.
   */
  cancelJobs(tx: Transaction, operation: string): Promise<boolean>
  /** Takes jobs of one kind until closed; each job gets its own verdict, a missing one fails. */
  work<Name extends JobName>(
    name: Name,
    handle: (batch: Job<Name>[]) => Promise<JobOutcome[]>,
  ): Promise<void>
  /** Stops taking jobs and waits up to `withinMs` for those running; the rest go back at once. */
  close(withinMs?: number): Promise<void>
}

export const pgBossSchema = 'pgboss'

/** For processes that take no jobs: no maintenance, no connection kept for listening. */
export const createIdleBoss = (databaseUrl: string): PgBoss =>
  new PgBoss({
    connectionString: databaseUrl,
    schema: pgBossSchema,
    max: 1,
    migrate: false,
    createSchema: false,
    supervise: false,
    schedule: false,
  })

/** For processes that only promise work. */
export const openQueueSender = (databaseUrl: string, log: Log): Promise<Queue> =>
  openQueue(createIdleBoss(databaseUrl), log)

/** For worker processes: woken by NOTIFY, looking for dead workers every 2 s. */
export function openQueueWorker(databaseUrl: string, log: Log): Promise<Queue> {
  return openQueue(
    new PgBoss({
      connectionString: databaseUrl,
      schema: pgBossSchema,
      max: 10,
      migrate: false,
      createSchema: false,
      useListenNotify: true,
      superviseIntervalSeconds: 2,
      monitorIntervalSeconds: 2,
      persistWarnings: true,
      persistQueueStats: true,
    }),
    log,
  )
}

/** Release step: brings the queue's schema and every queue of the board to this version. */
export async function migrateQueue(databaseUrl: string, log: Log): Promise<void> {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    schema: pgBossSchema,
    max: 2,
    schedule: false,
  })
  boss.on('error', error => log.error({ err: error }, 'queue.error'))
  await boss.start().catch(refuseWhenUnreachable)
  for (const name of jobNames) {
    const deadLetterQueue = deadLetterQueueOf(name)
    const { notify: _, heartbeatSeconds: __, ...deadLetterPolicy } = retryPolicy
    await boss.createQueue(deadLetterQueue, {
      ...deadLetterPolicy,
      deleteAfterSeconds: retryPolicy.retentionSeconds,
    })
    const { expireInSeconds, policy, cron } = jobOptions[name]
    const options = { ...retryPolicy, expireInSeconds, deadLetter: deadLetterQueue }
    await boss.createQueue(name, { ...options, policy })
    await boss.updateQueue(name, options)
    if (cron) await boss.schedule(name, cron, {})
  }
  await boss.stop({ graceful: true, timeout: 5_000 })
}

async function openQueue(boss: PgBoss, log: Log): Promise<Queue> {
  boss.on('error', error => log.warn({ err: error }, 'queue.error'))
  boss.on('warning', warning => log.warn({ warning: warning.message }, 'queue.warning'))
  await boss.start().catch(refuseWhenNotMigrated)

  return {
    async send(tx, name, newJobs) {
      const db = { executeSql: (text: string, values?: unknown[]) => tx.query(text, values) }
      await boss.insert(
        name,
        newJobs.map(({ id, data, priority, key, afterSeconds }) => ({
          id,
          data,
          priority,
          ...(key !== undefined && { singletonKey: key }),
          ...(afterSeconds !== undefined && { startAfter: afterSeconds }),
        })),
        { db },
      )
    },

    async cancelJobs(tx, operation) {
      const { rows } = await tx.query<{ waiting: boolean }>(
        `with ours as (
           select id, name, state from ${pgBossSchema}.job
           where id = $1::uuid or data->>'operation' = ($1::uuid)::text for update
         ), gone as (
           delete from ${pgBossSchema}.job j using ours o
           where j.id = o.id and j.name = o.name and o.state < 'active'
         )
         select state < 'active' as waiting from ours`,
        [operation],
      )
      return rows.length > 0 && rows.every(({ waiting }) => waiting)
    },

    async work(name, handle) {
      const { batchSize, concurrency } = jobOptions[name]
      // With a batch of one, or without bursts and this interval, a backlog waits 30 s between jobs.
      const options = {
        batchSize,
        localConcurrency: concurrency,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 1,
        notifyPollingIntervalSeconds: 1,
        perJobResults: true,
        includeMetadata: true,
      } as const
      await boss.work(name, options, async (batch: JobWithMetadata<JobPayloads[typeof name]>[]) => {
        const timed = jobSeconds.startTimer({ queue: name })
        try {
          const verdicts = await withSpan(
            `job ${name}`,
            { 'messaging.destination.name': name, 'messaging.batch.message_count': batch.length },
            () => handle(batch.map(job => toJob<typeof name>(job))),
          )
          timed({ outcome: verdicts.every(({ done }) => done) ? 'done' : 'failed' })
          return verdicts.map(toJobResult)
        } catch (error) {
          timed({ outcome: 'failed' })
          throw error
        }
      })
    },

    close: (withinMs = 20_000) => boss.stop({ graceful: true, timeout: withinMs, close: true }),
  }
}

function refuseWhenNotMigrated(error: Error): never {
  if (!/pg-boss.*(?:is not installed|requires migrations)/.test(error.message)) {
    return refuseWhenUnreachable(error)
  }
  throw new Refusal(
    'unavailable',
    'The queue in this database is not of this version',
    'Run the release step first: npm run migrate',
  )
}

function toJob<Name extends JobName>(job: JobWithMetadata<JobPayloads[Name]>): Job<Name> {
  const { id, data, signal, retryCount, retryLimit } = job
  return { id, data, signal, isRetry: retryCount > 0, isLastTry: retryCount >= retryLimit }
}

function toJobResult(verdict: JobOutcome): JobResult {
  return verdict.done
    ? { id: verdict.id, status: 'completed' }
    : { id: verdict.id, status: 'failed', output: { message: verdict.error } }
}
