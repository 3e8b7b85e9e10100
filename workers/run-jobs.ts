import type { Backend } from '#shared/backend.ts'
import { isPermanentFailure, type JobName } from '#shared/domain/jobs.ts'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import type { JobOutcome, Snooze } from '#shared/storage/queue/job-outcome.ts'

export type JobHandler<Name extends JobName> = (
  backend: Backend,
  batch: readonly Job<Name>[],
) => Promise<JobOutcome[]>

export type JobDefinition<Name extends JobName> = {
  /** Safe to run again: a job whose worker died is given to another. A failure is thrown. */
  run(backend: Backend, job: Job<Name>): Promise<Snooze | undefined | void>
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
    runBatch(backend: Backend, batch: readonly Job<Name>[]): Promise<void>
  }): JobHandler<Name> =>
  async (backend, batch) => {
    if (batch.length > 1) {
      const isDone = await runBatch(backend, batch).then(
        () => true,
        () => false,
      )
      if (isDone) return batch.map(({ id }) => ({ id, status: 'done' }))
    }
    const run = (_: Backend, job: Job<Name>): Promise<void> => runBatch(backend, [job])
    return sequentially({ ...definition, run })(backend, batch)
  }

async function runJob<Name extends JobName>(
  backend: Backend,
  job: Job<Name>,
  definition: JobDefinition<Name>,
): Promise<JobOutcome> {
  const { id } = job
  try {
    const snooze = await definition.run(backend, job)
    return snooze ? { id, status: 'snooze', ...snooze } : { id, status: 'done' }
  } catch (error) {
    if (await definition.isObsolete?.(backend, job)) return { id, status: 'done' }
    return endFailedTry(backend, job, definition, error as Error)
  }
}

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
