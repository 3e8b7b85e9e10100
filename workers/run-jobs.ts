import type { Backend } from '#shared/backend.ts'
import { isPermanentFailure, type JobName, type Outage } from '#shared/domain/jobs.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { ModelRefusal } from '#shared/models/model-refusal.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import { holdFor, type JobOutcome, type Snooze } from '#shared/storage/queue/job-outcome.ts'

export type JobHandler<Name extends JobName> = (
  backend: Backend,
  batch: readonly Job<Name>[],
) => Promise<JobOutcome[]>

/** Whether `Queue.complete` has already removed the job. */
type Removal = { isRemoved?: boolean }

export type JobDefinition<Name extends JobName> = {
  /** Must be safe to run again: a job whose worker died is given to another. */
  run(backend: Backend, job: Job<Name>): Promise<Snooze | Removal | undefined | void>
  /** Logged when a try fails, with the ids of the payload. */
  failedEvent: string
  /** The level of that entry when no further try follows; `warn` otherwise. */
  givenUpLevel?: 'error'
  /** Refusals after which this job is tried again, unlike others. */
  alsoRetried?: readonly RefusalReason[]
  /** After a failure: whether the subject of the job is gone, so that the job is done. */
  isObsolete?(backend: Backend, job: Job<Name>): Promise<boolean>
  /** Runs when no further try follows. */
  giveUp?(backend: Backend, job: Job<Name>, error: unknown): Promise<unknown>
  /** `giveUp` writes the failure into a result, so that no dead letter is left. */
  isDoneOnceGivenUp?: true
}

/** Runs the jobs of a batch at once; one that fails or takes long fails no other. */
export const concurrently =
  <Name extends JobName>(definition: JobDefinition<Name>): JobHandler<Name> =>
  (backend, batch) =>
    Promise.all(batch.map(job => runJob(backend, job, definition)))

/** Runs the jobs of a batch one after the other; one that fails stops no other. */
export const sequentially =
  <Name extends JobName>(definition: JobDefinition<Name>): JobHandler<Name> =>
  async (backend, batch) => {
    const outcomes: JobOutcome[] = []
    for (const job of batch) outcomes.push(await runJob(backend, job, definition))
    return outcomes
  }

/** Runs each group of a batch in one go. When a group fails, each of its jobs is run alone. */
export const asBatch =
  <Name extends JobName>({
    runBatch,
    groupOf,
    ...definition
  }: Omit<JobDefinition<Name>, 'run'> & {
    /** @returns the ids of those that have ended already */
    runBatch(backend: Backend, batch: readonly Job<Name>[]): Promise<ReadonlySet<string> | void>
    /** Jobs of one group, such as those of one model, fail together. */
    groupOf(data: Job<Name>['data']): string
  }): JobHandler<Name> =>
  async (backend, batch) => {
    const run = async (_: Backend, job: Job<Name>): Promise<Removal> =>
      removalOf(job.id, await runBatch(backend, [job]))
    const runGroup = async (group: readonly Job<Name>[]): Promise<JobOutcome[]> => {
      if (group.length > 1) {
        const [result] = await Promise.allSettled([runBatch(backend, group)])
        if (result.status === 'fulfilled')
          return group.map(({ id }) => ({ id, status: 'done', ...removalOf(id, result.value) }))
        const outage = await findOutage(backend, result.reason)
        if (outage) {
          backend.log.debug({ err: result.reason, jobs: group.length }, 'job.held')
          return group.map(({ id }) => holdFor(id, outage))
        }
      }
      return sequentially({ ...definition, run })(backend, group)
    }
    const groups = [...Map.groupBy(batch, ({ data }) => groupOf(data)).values()]
    return (await Promise.all(groups.map(runGroup))).flat()
  }

const removalOf = (id: string, ended: ReadonlySet<string> | void): Removal =>
  ended?.has(id) ? { isRemoved: true } : {}

async function runJob<Name extends JobName>(
  backend: Backend,
  job: Job<Name>,
  definition: JobDefinition<Name>,
): Promise<JobOutcome> {
  const { id } = job
  try {
    const result = await definition.run(backend, job)
    return result && 'snoozeSeconds' in result
      ? { id, status: 'snooze', ...result }
      : { id, status: 'done', ...result }
  } catch (error) {
    if (await definition.isObsolete?.(backend, job)) return { id, status: 'done' }
    const outage = await findOutage(backend, error)
    if (outage) {
      backend.log.debug({ err: error, ...idsOf(job.data) }, 'job.held')
      return holdFor(id, outage)
    }
    return endFailedTry(backend, job, definition, error as Error)
  }
}

/**
 * Finds the memory store or the embedding model that does not answer. An outage uses up no try, since it may last longer
 * than all tries together. It is logged once, by the breaker, not for each job.
 */
async function findOutage(
  { storeBreaker, embedders }: Pick<Backend, 'storeBreaker' | 'embedders'>,
  error: unknown,
): Promise<Outage | undefined> {
  if (error instanceof ModelRefusal) return embedders.findOutage(error)
  if (!(error instanceof Refusal && error.reason === 'unavailable')) return undefined
  await storeBreaker.check()
  if (!storeBreaker.isAway) return undefined
  const { reason = 'it does not answer' } = storeBreaker
  return { dependency: 'mongodb', reason, isAway: true }
}

const loggedIds = ['operation', 'n', 'batch', 'turn', 'org', 'tag', 'run', 'delivery'] as const

const idsOf = (data: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(data).filter(([name]) => loggedIds.includes(name as never)))

async function endFailedTry<Name extends JobName>(
  backend: Backend,
  job: Job<Name>,
  { failedEvent, givenUpLevel, alsoRetried, giveUp, isDoneOnceGivenUp }: JobDefinition<Name>,
  error: Error,
): Promise<JobOutcome> {
  const { id, data, isLastTry } = job
  const isPermanent =
    isPermanentFailure(error) && !(error instanceof Refusal && alsoRetried?.includes(error.reason))
  const last = isLastTry || isPermanent
  const fields = { ...idsOf(data), last }
  backend.log[(last && givenUpLevel) || 'warn']({ err: error, ...fields }, failedEvent)
  if (!last) return { id, status: 'retry', error: error.message }
  try {
    await giveUp?.(backend, job, error)
  } catch (giveUpError) {
    backend.log.warn({ err: giveUpError, ...fields }, failedEvent)
    return { id, status: 'retry', error: error.message }
  }
  return isDoneOnceGivenUp ? { id, status: 'done' } : { id, status: 'cancel', error: error.message }
}
