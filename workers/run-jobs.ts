import type { Backend } from '#shared/backend.ts'
import { isPermanentFailure, type JobName } from '#shared/domain/jobs.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import type { JobOutcome, Snooze } from '#shared/storage/queue/job-outcome.ts'

export type JobHandler<Name extends JobName> = (
  backend: Backend,
  batch: readonly Job<Name>[],
) => Promise<JobOutcome[]>

/** Of a job that is done: whether `Queue.complete` has ended it. */
type Removal = { isRemoved: boolean }

export type JobDefinition<Name extends JobName> = {
  /** Safe to run again: a job whose worker died is given to another. A failure is thrown. */
  run(backend: Backend, job: Job<Name>): Promise<Snooze | Removal | undefined | void>
  /** Logged when a try fails, with the ids that say which. */
  failedEvent: string
  logFields(data: Job<Name>['data']): Record<string, unknown>
  /** The level of that entry when no further try follows; `warn` otherwise. */
  givenUpLevel?: 'error'
  /** Refusals after which this job is tried again, though others are not. */
  alsoRetried?: readonly RefusalReason[]
  /** After a failure: whether what the job was for is gone, so that it is done. */
  isObsolete?(backend: Backend, job: Job<Name>): Promise<boolean>
  /** What is left to do when no further try follows. */
  giveUp?(backend: Backend, job: Job<Name>, error: unknown): Promise<unknown>
  /** `giveUp` writes the failure into a result, so that no dead letter is left. */
  isDoneOnceGivenUp?: true
}

/** Runs the jobs of a batch side by side. Each by itself: one that fails or takes long fails no other. */
export const concurrently =
  <Name extends JobName>(definition: JobDefinition<Name>): JobHandler<Name> =>
  (backend, batch) =>
    Promise.all(batch.map(job => runJob(backend, job, definition)))

/** Runs the jobs of a batch one after the other; one that fails holds up no other. */
export const sequentially =
  <Name extends JobName>(definition: JobDefinition<Name>): JobHandler<Name> =>
  async (backend, batch) => {
    const outcomes: JobOutcome[] = []
    for (const job of batch) outcomes.push(await runJob(backend, job, definition))
    return outcomes
  }

/**
 * Runs a batch in one go. When it fails each job is run alone, so that one that cannot succeed holds up
 * no other.
 */
export const asBatch =
  <Name extends JobName>({
    runBatch,
    ...definition
  }: Omit<JobDefinition<Name>, 'run'> & {
    runBatch(backend: Backend, batch: readonly Job<Name>[]): Promise<Removal | void>
  }): JobHandler<Name> =>
  async (backend, batch) => {
    if (batch.length > 1) {
      const [result] = await Promise.allSettled([runBatch(backend, batch)])
      if (result.status === 'fulfilled')
        return batch.map(({ id }) => ({ id, status: 'done', ...result.value }))
      if (await isOutage(backend, result.reason)) {
        const { failedEvent } = definition
        backend.log.warn({ err: result.reason, jobs: batch.length, outage: true }, failedEvent)
        return batch.map(({ id }) => snoozeForOutage(id))
      }
    }
    const run = (_: Backend, job: Job<Name>): Promise<Removal | void> => runBatch(backend, [job])
    return sequentially({ ...definition, run })(backend, batch)
  }

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
    // One whose failure is a part of a result is not kept waiting for longer than its tries.
    if (!definition.isDoneOnceGivenUp && (await isOutage(backend, error))) {
      const fields = { err: error, ...definition.logFields(job.data), last: false, outage: true }
      backend.log.warn(fields, definition.failedEvent)
      return snoozeForOutage(id)
    }
    return endFailedTry(backend, job, definition, error as Error)
  }
}

/**
 * Whether the memory store is out of reach, and not only for this job. An outage uses up no try: it may last longer
 * than all tries together.
 */
async function isOutage({ mongo }: Backend, error: unknown): Promise<boolean> {
  if (!(error instanceof Refusal && error.reason === 'unavailable')) return false
  return mongo.ping().then(
    () => false,
    () => true,
  )
}

/** 2 to 5 seconds: the jobs of an outage do not all come back at once. */
const snoozeForOutage = (id: string): JobOutcome => ({
  id,
  status: 'snooze',
  snoozeSeconds: 2 + Math.floor(Math.random() * 4),
})

async function endFailedTry<Name extends JobName>(
  backend: Backend,
  job: Job<Name>,
  {
    failedEvent,
    logFields,
    givenUpLevel,
    alsoRetried,
    giveUp,
    isDoneOnceGivenUp,
  }: JobDefinition<Name>,
  error: Error,
): Promise<JobOutcome> {
  const { id, data, isLastTry } = job
  const isPermanent =
    isPermanentFailure(error) && !(error instanceof Refusal && alsoRetried?.includes(error.reason))
  const last = isLastTry || isPermanent
  const fields = { ...logFields(data), last }
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
