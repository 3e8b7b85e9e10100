import type { Backend } from '#shared/backend.ts'
import { abandonClearing, finishClearing } from '#shared/vault/delete/clear-vault.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runConcurrently } from '#workers/run-jobs.ts'

/** Removes what was cleared from both stores. */
export const clear = (backend: Backend, batch: Job<'clear'>[]): Promise<JobOutcome[]> =>
  runConcurrently(backend, batch, {
    run: ({ data, signal }) => finishClearing(backend, data, signal),
    failedEvent: 'clear.failed',
    logFields: ({ operation }) => ({ operation }),
    onGivenUp: ({ data }) => abandonClearing(backend, data),
  })
