import type { ApiBackend } from '#api/edge/api-backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import {
  deleteEndedJobs,
  findJobs,
  isCancelledToDelete,
  noSuchJob,
  queueOfDead,
  requireEnded,
  retryJob,
  type JobRow,
} from '#shared/storage/queue/job-admin.ts'
import { listDeadLetters, redriveDeadLetters } from '#shared/storage/queue/queue-admin.ts'
import { cancelAsOperator } from '#shared/vault/delete/cancel.ts'

export type JobAction = 'run' | 'cancel' | 'delete'

export type JobsChanged = {
  jobs: number
  refused: { id: string; error: string }[]
  /** More dead jobs were to be changed than are changed at once. */
  hasMore: boolean
}

const deadAtOnce = 500

/**
 * Lets jobs of a queue run, cancels or deletes them. One that is refused does not keep the others.
 *
 * @param ids undefined for all jobs of a queue of dead ones, the oldest 500
 * @throws Refusal `invalid` without ids for any other queue.
 */
export async function changeJobs(
  backend: ApiBackend,
  action: JobAction,
  queue: string,
  ids: readonly string[] | undefined,
): Promise<JobsChanged> {
  const { query } = backend.postgres
  const listed = ids ?? (await oldestDead(backend, queue))
  const named = [...new Set(listed)].slice(0, deadAtOnce)
  const jobs = await findJobs(query, queue, named)
  const found = new Set(jobs.map(({ id }) => id))
  const refused = await actions[action](backend, queue, jobs)
  const gone = ids ? named.filter(id => !found.has(id)) : []
  return {
    jobs: jobs.length - refused.length,
    refused: [...refused, ...gone.map(id => ({ id, error: noSuchJob }))],
    hasMore: ids === undefined && listed.length > deadAtOnce,
  }
}

async function oldestDead({ postgres }: ApiBackend, queue: string): Promise<string[]> {
  const name = queueOfDead(queue)
  if (!name) throw refusal('invalid', 'jobIdsMissing')
  const letters = await listDeadLetters(postgres.query, name, deadAtOnce + 1)
  return letters.map(({ id }) => id)
}

type Refused = JobsChanged['refused']
type Act = (backend: ApiBackend, queue: string, jobs: readonly JobRow[]) => Promise<Refused>

const actions: Record<JobAction, Act> = {
  async run({ postgres, config }, queue, jobs) {
    const name = queueOfDead(queue)
    if (!name) return each(jobs, job => retryJob(postgres, config.databaseUrl, job))
    const ids = jobs.map(({ id }) => id)
    if (ids.length > 0)
      await redriveDeadLetters(config.databaseUrl, name, { ids, limit: ids.length })
    return []
  },
  cancel: (backend, queue, jobs) =>
    each(jobs, async ({ id, state }) => {
      if (state === 'completed' || state === 'cancelled' || state === 'failed')
        throw new Refusal('conflict', 'This job has ended', 'Delete it')
      const { active } = await cancelAsOperator(backend, id)
      if (active > 0) throw new Refusal('conflict', runs(queue))
    }),
  async delete(backend, queue, jobs) {
    const ended: string[] = []
    const refused = await each(jobs, async job => {
      requireEnded(job)
      if (!isCancelledToDelete(job)) return void ended.push(job.id)
      const { active } = await cancelAsOperator(backend, job.id)
      if (active > 0) throw new Refusal('conflict', runs(queue))
    })
    if (ended.length > 0) await deleteEndedJobs(backend.config.databaseUrl, queue, ended)
    return refused
  },
}

const runs = (queue: string): string =>
  queueOfDead(queue)
    ? 'Another job of its operation runs: delete it when that has ended'
    : 'This job runs and cannot be cancelled'

async function each(
  jobs: readonly JobRow[],
  work: (job: JobRow) => Promise<void>,
): Promise<Refused> {
  const refused: Refused = []
  for (const job of jobs) {
    try {
      await work(job)
    } catch (error) {
      if (!(error instanceof Refusal) || error.reason !== 'conflict') throw error
      const { message, hint } = error
      refused.push({ id: job.id, error: hint ? `${message}. ${hint}` : message })
    }
  }
  return refused
}
