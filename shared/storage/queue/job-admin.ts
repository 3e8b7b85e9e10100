import { deadLetterQueueOf, jobNames, type JobName } from '#shared/domain/jobs.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { createIdleBoss, pgBossSchema } from '#shared/storage/queue/boss.ts'

export type JobRow = {
  id: string
  /** A queue of the board, or its dead-letter queue. */
  queue: string
  state: 'created' | 'retry' | 'active' | 'completed' | 'cancelled' | 'failed'
  priority: number
  tries: number
  createdAt: Date
  /** It does not run before. */
  startsAfter: Date
  startedAt: Date | null
  completedAt: Date | null
  /** The operation it belongs to, where it has one. */
  operation: string | null
  /** Why the last try failed. */
  error: string
}

export type JobDetail = JobRow & { data: unknown }

const columns = `id, name as queue, state, priority, start_after as "startsAfter",
  created_on as "createdAt", started_on as "startedAt", completed_on as "completedAt",
  data->>'operation' as operation,
  coalesce(source_retry_count, retry_count)::int as tries,
  coalesce(source_output->>'message', output->>'message', '') as error`

const queueNames = new Set<string>(jobNames.flatMap(name => [name, deadLetterQueueOf(name)]))

/** @throws Refusal `missing` for a name that is no queue of the board and no dead-letter queue. */
export function requireQueue(name: string): string {
  if (queueNames.has(name)) return name
  throw new Refusal('missing', 'There is no such queue')
}

/** Jobs of a queue, those that run first, then newest first; without their payloads. */
export async function listJobs(
  query: Query,
  queue: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<JobRow[]> {
  const { rows } = await query<JobRow>(
    `select ${columns} from ${pgBossSchema}.job where name = $1
     order by state <> 'active', created_on desc, id desc limit $2 offset $3`,
    [queue, limit, offset],
  )
  return rows
}

/** @throws Refusal `missing`. */
export async function requireJob(query: Query, queue: string, id: string): Promise<JobDetail> {
  const { rows } = isUuid(id)
    ? await query<JobDetail>(
        `select ${columns}, data from ${pgBossSchema}.job where name = $1 and id = $2`,
        [queue, id],
      )
    : { rows: [] }
  if (rows[0]) return rows[0]
  throw new Refusal('missing', noSuchJob, 'Finished jobs are deleted within two minutes')
}

export const noSuchJob = 'There is no such job'

/** Those of the jobs that are there. */
export async function findJobs(
  query: Query,
  queue: string,
  ids: readonly string[],
): Promise<JobRow[]> {
  const { rows } = await query<JobRow>(
    `select ${columns} from ${pgBossSchema}.job where name = $1 and id = any($2::uuid[])`,
    [queue, ids],
  )
  return rows
}

/** The queue that jobs died in; undefined for a queue of jobs that are not dead. */
export const queueOfDead = (queue: string): JobName | undefined =>
  jobNames.find(name => deadLetterQueueOf(name) === queue)

/**
 * Lets a job run now: one that waits for a later time becomes due, one that has ended without success starts again.
 * Dead letters are put back by `redriveDeadLetters`.
 *
 * @throws Refusal `conflict` for a job that runs or is done.
 */
export async function retryJob(
  { query }: { query: Query },
  databaseUrl: string,
  { queue, id, state }: JobRow,
): Promise<void> {
  if (state === 'active' || state === 'completed') throw notInState('runs or is done')
  if (state === 'created' || state === 'retry') {
    await query(
      `update ${pgBossSchema}.job set start_after = now()
       where name = $1 and id = $2 and state < 'active'`,
      [queue, id],
    )
    return
  }
  await withBoss(databaseUrl, boss => boss.retry(queue, id))
}

/** Queues of steps of an operation that can be cancelled: without one of them it never ends. */
const cancellableSteps: JobName[] = ['ingest', 'upload', 'import', 'reembed', 'retention']

/** Whether the operation of a job can end no more once it is deleted: it is to be cancelled instead. */
export const isCancelledToDelete = ({ queue }: JobRow): boolean =>
  cancellableSteps.some(name => deadLetterQueueOf(name) === queue)

/** @throws Refusal `conflict` for a job that waits or runs: cancelling it also cancels its operation. */
export function requireEnded({ queue, state }: JobRow): void {
  if (!queueOfDead(queue) && (state === 'created' || state === 'retry' || state === 'active'))
    throw notInState('waits or runs', 'Cancel it: that also cancels its operation')
}

/** Deletes jobs that have ended (`requireEnded`), and dead letters: their operations stay as they are. */
export const deleteEndedJobs = (
  databaseUrl: string,
  queue: string,
  ids: readonly string[],
): Promise<unknown> => withBoss(databaseUrl, boss => boss.deleteJob(queue, [...ids]))

/** Sends a job. @returns its id; null when the policy of the queue has taken none. */
export const sendJob = (
  databaseUrl: string,
  queue: JobName,
  data: object,
): Promise<string | null> => withBoss(databaseUrl, boss => boss.send(queue, data))

const notInState = (what: string, hint?: string): Refusal =>
  new Refusal('conflict', `This job ${what}`, hint)

async function withBoss<Result>(
  databaseUrl: string,
  work: (boss: ReturnType<typeof createIdleBoss>) => Promise<Result>,
): Promise<Result> {
  const boss = createIdleBoss(databaseUrl)
  boss.on('error', () => {})
  await boss.start()
  try {
    return await work(boss)
  } finally {
    await boss.stop({ graceful: false })
  }
}
