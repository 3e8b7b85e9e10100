import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'

type JobRunner<Name extends JobName> = {
  /** Safe to run again: a job whose worker died is given to another. */
  run(job: Job<Name>): Promise<unknown>
  /** Logged when it fails, with the ids that say which. */
  failedEvent: string
  logFields(data: Job<Name>['data']): Record<string, unknown>
  /** What is left to do when no further try follows. */
  onGivenUp?(job: Job<Name>): Promise<unknown>
}

/** Does the jobs of a batch side by side. Each by itself: one that fails or takes long fails no other. */
export const runConcurrently = <Name extends JobName>(
  backend: Backend,
  batch: readonly Job<Name>[],
  runner: JobRunner<Name>,
): Promise<JobOutcome[]> => Promise.all(batch.map(job => runJob(backend, job, runner)))

/** Does the jobs of a batch one after the other; one that fails holds up no other. */
export async function runSequentially<Name extends JobName>(
  backend: Backend,
  batch: readonly Job<Name>[],
  runner: JobRunner<Name>,
): Promise<JobOutcome[]> {
  const results: JobOutcome[] = []
  for (const job of batch) results.push(await runJob(backend, job, runner))
  return results
}

async function runJob<Name extends JobName>(
  { log }: Backend,
  job: Job<Name>,
  { run, failedEvent, logFields, onGivenUp }: JobRunner<Name>,
): Promise<JobOutcome> {
  const { id, data, isLastTry } = job
  try {
    await run(job)
    return { id, done: true }
  } catch (error) {
    log.warn({ err: error, ...logFields(data), last: isLastTry }, failedEvent)
    if (isLastTry) await onGivenUp?.(job)
    return { id, done: false, error: (error as Error).message }
  }
}
