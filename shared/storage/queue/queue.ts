import { PgBoss, type JobResult, type JobWithMetadata } from 'pg-boss'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'
import { jobSeconds } from '#shared/core/metrics.ts'
import { traced } from '#shared/core/trace.ts'
import { refuseWhenUnreachable, type Transaction } from '#shared/storage/postgres/connect.ts'
import {
  deadLetterOf,
  jobNames,
  jobs,
  patience,
  type JobName,
  type Payloads,
} from '#shared/domain/jobs.ts'

export type Promised<Name extends JobName> = {
  /** The operation's UUIDv7: sending it twice sends it once. */
  id: string
  data: Payloads[Name]
  /** Jobs of one vault wait behind those of vaults with less waiting: minus the vault's pending jobs. */
  priority: number
  /** What a queue's policy counts by, such as the vault: see `policy` on the board. */
  key?: string
  /** Not before so many seconds from now. */
  afterSeconds?: number
}

export type Job<Name extends JobName> = {
  id: string
  data: Payloads[Name]
  /** Aborted when the claim is lost, or when the process must stop. */
  signal: AbortSignal
  /** An earlier try may have done part of it. */
  again: boolean
  /** No further try follows this one. */
  last: boolean
}

export type Verdict = { id: string; done: true } | { id: string; done: false; error: string }

export type Queue = {
  /** Enqueues in the caller's transaction: the jobs exist when, and only when, it commits. */
  send<Name extends JobName>(tx: Transaction, name: Name, promised: Promised<Name>[]): Promise<void>
  /**
   * Removes the waiting jobs of an operation: the one that has its id, and those that carry it in
   * `data.operation`. False, with nothing settled, when one has begun: roll back then.
   */
  takeBack(tx: Transaction, operation: string): Promise<boolean>
  /** Takes jobs of one kind until closed; each job gets its own verdict, a missing one fails. */
  work<Name extends JobName>(
    name: Name,
    handle: (batch: Job<Name>[]) => Promise<Verdict[]>,
  ): Promise<void>
  /** Stops taking jobs and waits up to `withinMs` for those running; the rest go back at once. */
  close(withinMs?: number): Promise<void>
}

export const schema = 'pgboss'

/** For processes that take no jobs: no maintenance, no connection kept for listening. */
export const idleBoss = (databaseUrl: string): PgBoss =>
  new PgBoss({
    connectionString: databaseUrl,
    schema,
    max: 1,
    migrate: false,
    createSchema: false,
    supervise: false,
    schedule: false,
  })

/** For processes that only promise work. */
export const openSender = (databaseUrl: string, log: Log): Promise<Queue> =>
  open(idleBoss(databaseUrl), log)

/** For worker processes: woken by NOTIFY, looking for dead workers every 2 s. */
export function openWorker(databaseUrl: string, log: Log): Promise<Queue> {
  return open(
    new PgBoss({
      connectionString: databaseUrl,
      schema,
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
  const boss = new PgBoss({ connectionString: databaseUrl, schema, max: 2, schedule: false })
  boss.on('error', error => log.error({ err: error }, 'queue.error'))
  await boss.start().catch(refuseWhenUnreachable)
  for (const name of jobNames) {
    const dead = deadLetterOf(name)
    const { notify: _, heartbeatSeconds: __, ...keeping } = patience
    await boss.createQueue(dead, { ...keeping, deleteAfterSeconds: patience.retentionSeconds })
    const { expireInSeconds, policy, cron } = jobs[name]
    const options = { ...patience, expireInSeconds, deadLetter: dead }
    await boss.createQueue(name, { ...options, policy })
    await boss.updateQueue(name, options)
    if (cron) await boss.schedule(name, cron, {})
  }
  await boss.stop({ graceful: true, timeout: 5_000 })
}

async function open(boss: PgBoss, log: Log): Promise<Queue> {
  boss.on('error', error => log.warn({ err: error }, 'queue.error'))
  boss.on('warning', warning => log.warn({ warning: warning.message }, 'queue.warning'))
  await boss.start().catch(refuseUnreleased)

  return {
    async send(tx, name, promised) {
      const db = { executeSql: (text: string, values?: unknown[]) => tx.query(text, values) }
      await boss.insert(
        name,
        promised.map(({ id, data, priority, key, afterSeconds }) => ({
          id,
          data,
          priority,
          ...(key !== undefined && { singletonKey: key }),
          ...(afterSeconds !== undefined && { startAfter: afterSeconds }),
        })),
        { db },
      )
    },

    async takeBack(tx, operation) {
      const { rows } = await tx.query<{ waiting: boolean }>(
        `with ours as (
           select id, name, state from ${schema}.job
           where id = $1::uuid or data->>'operation' = ($1::uuid)::text for update
         ), gone as (
           delete from ${schema}.job j using ours o
           where j.id = o.id and j.name = o.name and o.state < 'active'
         )
         select state < 'active' as waiting from ours`,
        [operation],
      )
      return rows.length > 0 && rows.every(({ waiting }) => waiting)
    },

    async work(name, handle) {
      const { batchSize, concurrency } = jobs[name]
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
      await boss.work(name, options, async (batch: JobWithMetadata<Payloads[typeof name]>[]) => {
        const timed = jobSeconds.startTimer({ queue: name })
        try {
          const verdicts = await traced(
            `job ${name}`,
            { 'messaging.destination.name': name, 'messaging.batch.message_count': batch.length },
            () => handle(batch.map(job => jobOf<typeof name>(job))),
          )
          timed({ outcome: verdicts.every(({ done }) => done) ? 'done' : 'failed' })
          return verdicts.map(resultOf)
        } catch (error) {
          timed({ outcome: 'failed' })
          throw error
        }
      })
    },

    close: (withinMs = 20_000) => boss.stop({ graceful: true, timeout: withinMs, close: true }),
  }
}

function refuseUnreleased(error: Error): never {
  if (!/pg-boss.*(?:is not installed|requires migrations)/.test(error.message)) {
    return refuseWhenUnreachable(error)
  }
  throw new Refusal(
    'unavailable',
    'The queue in this database is not of this version',
    'Run the release step first: npm run migrate',
  )
}

function jobOf<Name extends JobName>(job: JobWithMetadata<Payloads[Name]>): Job<Name> {
  const { id, data, signal, retryCount, retryLimit } = job
  return { id, data, signal, again: retryCount > 0, last: retryCount >= retryLimit }
}

function resultOf(verdict: Verdict): JobResult {
  return verdict.done
    ? { id: verdict.id, status: 'completed' }
    : { id: verdict.id, status: 'failed', output: { message: verdict.error } }
}
