import type { JobWithMetadata, PgBoss } from 'pg-boss'
import { releaseStepMissing } from '#shared/core/refusals.ts'
import { insertJsonBytes, JsonBytes } from '#shared/core/canonical-json.ts'
import type { Log } from '#shared/core/log.ts'
import { jobSeconds } from '#shared/core/metrics.ts'
import { withSpan } from '#shared/core/trace.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { refuseWhenUnreachable } from '#shared/storage/postgres/server-errors.ts'
import {
  deadLetterQueueOf,
  jobOptions,
  type JobName,
  type JobPayloads,
} from '#shared/domain/jobs.ts'
import { HeldJobs } from '#shared/storage/queue/held-jobs.ts'
import { defaultQueuePace, DueQueues, type QueuePace } from '#shared/storage/queue/due-queues.ts'
import { toBossDatabase } from '#shared/storage/queue/boss-database.ts'
import { endedJobsSql, insertedJobsSql } from '#shared/storage/queue/job-sql.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'
import {
  hasFailed,
  snoozeJobs,
  toJobResult,
  type JobOutcome,
} from '#shared/storage/queue/job-outcome.ts'

export type NewJob<Name extends JobName> = {
  /** The operation's UUIDv7: sending it twice sends it once. */
  id: string
  /** Its large fields may have been written as JSON before. */
  data: JobPayloads[Name] | WithJsonBytes<JobPayloads[Name]>
  /** Minus the number of the vault's pending jobs: a vault with many waits behind those with few. */
  priority: number
  /** By which the queue's `policy` counts, such as the vault. */
  key?: string
  /** By which `groupConcurrency` counts. */
  group?: string
  /** Seconds from now before which it does not run. */
  afterSeconds?: number
}

type WithJsonBytes<Payload> = { [Field in keyof Payload]: Payload[Field] | JsonBytes }

export type Job<Name extends JobName> = {
  id: string
  data: JobPayloads[Name]
  /** The number of this try; higher when another worker has taken the job since. */
  claim: number
  /** Aborted when another worker has the job, or when this process must stop. */
  signal: AbortSignal
  /** An earlier try may have done part of it. */
  isRetry: boolean
  /** No further try follows this one. */
  isLastTry: boolean
}

/** Sends, cancels and takes jobs. */
export class Queue {
  readonly #boss: PgBoss
  readonly #due: DueQueues
  /** Jobs that wait for what does not answer. */
  readonly held: HeldJobs

  private constructor(boss: PgBoss, log: Log, pace: QueuePace) {
    this.#boss = boss
    this.#due = new DueQueues(boss, pgBossSchema, log, pace)
    this.held = new HeldJobs(boss, log, pace.lookEveryMs)
  }

  /** @throws {Refusal} `unavailable` when the queue's schema is missing or of another version. */
  static async open(boss: PgBoss, log: Log, pace: QueuePace = defaultQueuePace): Promise<Queue> {
    boss.on('error', error => log.warn({ err: error }, 'queue.error'))
    boss.on('warning', warning => log.warn({ warning: warning.message }, 'queue.warning'))
    const queue = new Queue(boss, log, pace)
    await boss.start().catch(refuseWhenNotMigrated)
    return queue
  }

  /** Sends jobs in the caller's transaction: they exist when, and only when, it commits. */
  async send<Name extends JobName>(
    tx: Transaction,
    name: Name,
    newJobs: NewJob<Name>[],
  ): Promise<void> {
    const written = newJobs.flatMap(({ data }) =>
      Object.values(data).filter(value => value instanceof JsonBytes),
    )
    const jobs = newJobs.map(({ afterSeconds: after, ...job }) => ({ ...job, after }))
    await tx.query(
      `with job as (
         select * from json_to_recordset($1::json) as job(
           id uuid, data jsonb, priority int, key text, "group" text, after float8)
       ), ${insertedJobsSql(name, 'job')}
       select from notified`,
      [insertJsonBytes(JSON.stringify(jobs), written)],
      `queue.insert:${name}`,
    )
  }

  /** Makes the waiting job with this key due, or sends one when none waits, in the caller's transaction. */
  async sendOrHasten<Name extends JobName>(
    tx: Transaction,
    name: Name,
    { data, key, group }: Pick<NewJob<Name>, 'data' | 'group'> & { key: string },
  ): Promise<void> {
    await this.#boss.upsert(name, data, {
      singletonKey: key,
      startAfter: 0,
      ...(group !== undefined && { group: { id: group } }),
      db: toBossDatabase(tx),
    })
  }

  /**
   * Removes the jobs of an operation that no worker has taken: the one with its id, and those with it in
   * `data.operation`. One that waits for its next try, or was a dead letter, may have written already.
   *
   * @returns false when there is none, or one was taken: the caller rolls back.
   */
  async cancelJobs(tx: Transaction, operation: string): Promise<boolean> {
    const { rows } = await tx.query<{ waiting: boolean }>(
      `with matching as (
         select id, name,
                state < 'active' and started_on is null and source_root_id is null as waiting
         from ${pgBossSchema}.job
         where id = $1::uuid or data->>'operation' = ($1::uuid)::text for update
       ), removed as (
         delete from ${pgBossSchema}.job j using matching m
         where j.id = m.id and j.name = m.name and m.waiting
       )
       select waiting from matching`,
      [operation],
    )
    return rows.length > 0 && rows.every(({ waiting }) => waiting)
  }

  /** Runs `endedJobsSql` for these jobs in the caller's transaction. */
  async complete<Name extends JobName>(
    { query }: Transaction,
    name: Name,
    jobs: readonly Pick<Job<Name>, 'id' | 'claim'>[],
  ): Promise<void> {
    await query(
      endedJobsSql(name, '(select * from unnest($1::uuid[], $2::int[]) as ended(id, claim))'),
      [jobs.map(({ id }) => id), jobs.map(({ claim }) => claim)],
      `queue.complete:${name}`,
    )
  }

  /** Puts these dead letters back into their queue, with all their tries. @returns how many. */
  redrive(name: JobName, ids: readonly string[]): Promise<number> {
    return this.#boss.redrive(deadLetterQueueOf(name), { limit: ids.length, ids: [...ids] })
  }

  /** Takes jobs of one kind until closed; a job without an outcome is tried again. */
  async work<Name extends JobName>(
    name: Name,
    handle: (batch: Job<Name>[]) => Promise<JobOutcome[]>,
  ): Promise<void> {
    await this.#boss.work(name, workOptions(name), async (batch: JobRow<Name>[]) => {
      if (batch.length >= jobOptions[name].batchSize) this.#due.wakeNext(name)
      const outcomes = await runTimed(name, batch, handle)
      await snoozeJobs(this.#boss, name, batch, outcomes)
      forgetRemoved(batch, outcomes)
      return outcomes.flatMap(toJobResult)
    })
    this.#due.add(name)
    this.held.add(name)
  }

  /** Stops taking jobs and waits up to `withinMs` for those running; the rest go to other workers. */
  async close(withinMs = 20_000): Promise<void> {
    this.#due.stop()
    this.held.stop()
    await this.#boss.stop({ graceful: true, timeout: withinMs, close: true })
  }
}

type JobRow<Name extends JobName> = JobWithMetadata<JobPayloads[Name]>

const workOptions = (name: JobName) => {
  const { batchSize, concurrency, groupConcurrency } = jobOptions[name]
  const isSingle = batchSize === 1
  return {
    batchSize,
    localConcurrency: concurrency,
    ...(groupConcurrency !== undefined && { localGroupConcurrency: groupConcurrency }),
    burstWhenBatchFull: true,
    // While the connection that listens is lost; with it, `DueQueues` looks for what becomes due. Fetchers of
    // single jobs wake each other: twelve of them ask no more often than two.
    pollingIntervalSeconds: isSingle ? Math.max(1, concurrency / 2) : 1,
    notifyPollingIntervalSeconds: 300,
    perJobResults: true,
    includeMetadata: true,
  } as const
}

/** Takes jobs that have ended out of the list of pg-boss, which would look for each of them to end it. */
function forgetRemoved(batch: JobRow<JobName>[], outcomes: readonly JobOutcome[]): void {
  const removed = new Set(
    outcomes.filter(outcome => outcome.status === 'done' && outcome.isRemoved).map(({ id }) => id),
  )
  if (removed.size === 0) return
  batch.splice(0, Infinity, ...batch.filter(({ id }) => !removed.has(id)))
}

/** Runs a batch in a span and counts its seconds. */
async function runTimed<Name extends JobName>(
  name: Name,
  batch: JobRow<Name>[],
  handle: (batch: Job<Name>[]) => Promise<JobOutcome[]>,
): Promise<JobOutcome[]> {
  const stopTimer = jobSeconds.startTimer({ queue: name })
  try {
    const outcomes = await withSpan(
      `job ${name}`,
      { 'messaging.destination.name': name, 'messaging.batch.message_count': batch.length },
      () => handle(batch.map(job => toJob<Name>(job))),
    )
    stopTimer({ outcome: outcomes.some(hasFailed) ? 'failed' : 'done' })
    return outcomes
  } catch (error) {
    stopTimer({ outcome: 'failed' })
    throw error
  }
}

function refuseWhenNotMigrated(error: Error): never {
  const { message } = error
  const isNotMigrated =
    /pg-boss/.test(message) && /is not installed|requires migrations/.test(message)
  if (!isNotMigrated) return refuseWhenUnreachable(error)
  throw releaseStepMissing('The queue in this database is not of this version')
}

function toJob<Name extends JobName>(job: JobWithMetadata<JobPayloads[Name]>): Job<Name> {
  const { id, data, signal, retryCount, retryLimit } = job
  const isLastTry = retryCount >= retryLimit
  return { id, data, claim: retryCount, signal, isRetry: retryCount > 0, isLastTry }
}
