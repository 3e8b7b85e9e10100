import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'

type Doing<Name extends JobName> = {
  /** Safe to run again: a job whose worker died is given to another. */
  work(job: Job<Name>): Promise<unknown>
  /** Logged when it fails, with the ids that say which. */
  failed: string
  about(data: Job<Name>['data']): Record<string, unknown>
  /** What is left to do when no further try follows. */
  giveUp?(job: Job<Name>): Promise<unknown>
}

/** Does the jobs of a batch side by side. Each by itself: one that fails or takes long fails no other. */
export const each = <Name extends JobName>(
  backend: Backend,
  batch: readonly Job<Name>[],
  doing: Doing<Name>,
): Promise<Verdict[]> => Promise.all(batch.map(job => verdictOf(backend, job, doing)))

/** Does the jobs of a batch one after the other; one that fails holds up no other. */
export async function inTurn<Name extends JobName>(
  backend: Backend,
  batch: readonly Job<Name>[],
  doing: Doing<Name>,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const job of batch) verdicts.push(await verdictOf(backend, job, doing))
  return verdicts
}

async function verdictOf<Name extends JobName>(
  { log }: Backend,
  job: Job<Name>,
  { work, failed, about, giveUp }: Doing<Name>,
): Promise<Verdict> {
  const { id, data, last } = job
  try {
    await work(job)
    return { id, done: true }
  } catch (error) {
    log.warn({ err: error, ...about(data), last }, failed)
    if (last) await giveUp?.(job)
    return { id, done: false, error: (error as Error).message }
  }
}
