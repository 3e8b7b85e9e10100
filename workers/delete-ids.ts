import type { Backend } from '#shared/backend.ts'
import { executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runConcurrently } from '#workers/run-jobs.ts'

/** Removes single memories for good. */
export const deleteIds = (backend: Backend, batch: Job<'delete-ids'>[]): Promise<JobOutcome[]> =>
  runConcurrently(backend, batch, {
    run: ({ data }) => executeDeletion(backend, data),
    failedEvent: 'delete-ids.failed',
    logFields: ({ operation }) => ({ operation }),
    onGivenUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
