import { PgBoss, type JobWithMetadata } from 'pg-boss'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'
import { jobSeconds } from '#shared/core/metrics.ts'
import { withSpan } from '#shared/core/trace.ts'
import { refuseWhenUnreachable, type Transaction } from '#shared/storage/postgres/connect.ts'
import { jobOptions, type JobName, type JobPayloads } from '#shared/domain/jobs.ts'
import { createIdleBoss, pgBossSchema } from '#shared/storage/queue/boss.ts'
import {
  hasFailed,
  snoozeJobs,
  toJobResult,
  type JobOutcome,
} from '#shared/storage/queue/job-outcome.ts'

export type NewJob<Name extends JobName> = {
  /** The operation's UUIDv7: sending it twice sends it once. */
  id: string
  data: JobPayloads[Name]
  /** Minus the number of the vault's pending jobs: a vault with many waits behind those with few. */
  priority: number
  /** By which the queue's `policy` counts, such as the vault. */
  key?: string
  /** By which `groupConcurrency` counts. */
  group?: string
  /** Seconds from now before which it does not run. */
  afterSeconds?: number
}

export type Job<Name extends JobName> = {
  id: string
  data: JobPayloads[Name]
  /** Aborted when another worker has the job, or when this process must stop. */
  signal: AbortSignal
  /** An earlier try may have done part of it. */
  isRetry: boolean
  /** No further try follows this one. */
  isLastTry: boolean
}

export type Queue = {
  /** Sends jobs in the caller's transaction: they exist when, and only when, it commits. */
  send<Name extends JobName>(tx: Transaction, name: Name, jobs: NewJob<Name>[]): Promise<void>
  /** Makes the waiting job with this key due, or sends one when none waits, in the caller's transaction. */
  sendOrHasten<Name extends JobName>(
    tx: Transaction,
    name: Name,
    job: Pick<NewJob<Name>, 'data' | 'group'> & { key: string },
  ): Promise<void>
  /**
   * Removes the waiting jobs of an operation: the one with its id, and those with it in `data.operation`.
   *
   * @returns false when there is none, or one is running: the caller rolls back.
   */
  cancelJobs(tx: Transaction, operation: string): Promise<boolean>
  /** Takes jobs of one kind until closed; a job without an outcome is tried again. */
  work<Name extends JobName>(
    name: Name,
    handle: (batch: Job<Name>[]) => Promise<JobOutcome[]>,
  ): Promise<void>
  /** Stops taking jobs and waits up to `withinMs` for those running; the rest go to other workers. */
  close(withinMs?: number): Promise<void>
}

/** For processes that only send jobs. */
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

async function openQueue(boss: PgBoss, log: Log): Promise<Queue> {
  boss.on('error', error => log.warn({ err: error }, 'queue.error'))
  boss.on('warning', warning => log.warn({ warning: warning.message }, 'queue.warning'))
  await boss.start().catch(refuseWhenNotMigrated)

  return {
    async send(tx, name, newJobs) {
      await boss.insert(
        name,
        newJobs.map(({ id, data, priority, key, group, afterSeconds }) => ({
          id,
          data,
          priority,
          ...(key !== undefined && { singletonKey: key }),
          ...(group !== undefined && { group: { id: group } }),
          ...(afterSeconds !== undefined && { startAfter: afterSeconds }),
        })),
        { db: toBossDatabase(tx) },
      )
    },

    async sendOrHasten(tx, name, { data, key, group }) {
      await boss.upsert(name, data, {
        singletonKey: key,
        startAfter: 0,
        ...(group !== undefined && { group: { id: group } }),
        db: toBossDatabase(tx),
      })
    },

    async cancelJobs(tx, operation) {
      const { rows } = await tx.query<{ waiting: boolean }>(
        `with matching as (
           select id, name, state from ${pgBossSchema}.job
           where id = $1::uuid or data->>'operation' = ($1::uuid)::text for update
         ), removed as (
           delete from ${pgBossSchema}.job j using matching m
           where j.id = m.id and j.name = m.name and m.state < 'active'
         )
         select state < 'active' as waiting from matching`,
        [operation],
      )
      return rows.length > 0 && rows.every(({ waiting }) => waiting)
    },

    async work(name, handle) {
      const { batchSize, concurrency, groupConcurrency } = jobOptions[name]
      // With a batch of one, or without bursts and this interval, a backlog waits 30 s between jobs.
      const options = {
        batchSize,
        localConcurrency: concurrency,
        ...(groupConcurrency !== undefined && { localGroupConcurrency: groupConcurrency }),
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 1,
        notifyPollingIntervalSeconds: 1,
        perJobResults: true,
        includeMetadata: true,
      } as const
      await boss.work(name, options, async (batch: JobWithMetadata<JobPayloads[typeof name]>[]) => {
        const stopTimer = jobSeconds.startTimer({ queue: name })
        try {
          const outcomes = await withSpan(
            `job ${name}`,
            { 'messaging.destination.name': name, 'messaging.batch.message_count': batch.length },
            () => handle(batch.map(job => toJob<typeof name>(job))),
          )
          stopTimer({ outcome: outcomes.some(hasFailed) ? 'failed' : 'done' })
          await snoozeJobs(boss, name, batch, outcomes)
          return outcomes.flatMap(toJobResult)
        } catch (error) {
          stopTimer({ outcome: 'failed' })
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

const toBossDatabase = ({ query }: Transaction) => ({
  executeSql: (text: string, values?: unknown[]) => query(text, values),
})
