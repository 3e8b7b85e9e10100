import { finishAccountErasure } from '#shared/accounts/erase-account.ts'
import type { Backend } from '#shared/backend.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'

/** Looks whether erased accounts are empty by now, and signs the receipts of those that are. */
export const accountErase = (
  backend: Backend,
  batch: Job<'account-erase'>[],
): Promise<JobOutcome[]> => Promise.all(batch.map(job => runErasureJob(backend, job)))

async function runErasureJob(
  backend: Backend,
  { id, data, isLastTry }: Job<'account-erase'>,
): Promise<JobOutcome> {
  try {
    const isDone = await finishAccountErasure(backend, data)
    if (isDone) backend.log.info({ erasure: data.operation, look: data.look }, 'account.erased')
    return { id, done: true }
  } catch (error) {
    backend.log.warn(
      { err: error, erasure: data.operation, last: isLastTry },
      'account-erase.failed',
    )
    return { id, done: false, error: (error as Error).message }
  }
}
