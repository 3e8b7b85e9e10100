import type { Backend } from '#shared/backend.ts'
import { finalizeWrittenEdit } from '#shared/vault/edit/edit.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runConcurrently } from '#workers/run-jobs.ts'

/** Settles the edits whose requests died between writing and settling; most it finds settled. */
export const editSettle = (backend: Backend, batch: Job<'edit-settle'>[]): Promise<JobOutcome[]> =>
  runConcurrently(backend, batch, {
    run: ({ data }) => finalizeWrittenEdit(backend, data),
    failedEvent: 'edit.unsettled',
    logFields: ({ operation }) => ({ operation }),
  })
