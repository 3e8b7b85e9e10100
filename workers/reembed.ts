import type { Backend } from '#shared/backend.ts'
import { reembedStep } from '#shared/vault/reembed/reembed.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runConcurrently } from '#workers/run-jobs.ts'

/** Takes vaults a step further on their way into another vector space. */
export const reembed = (backend: Backend, batch: Job<'reembed'>[]): Promise<JobOutcome[]> =>
  runConcurrently(backend, batch, {
    run: ({ data, signal }) => reembedStep(backend, data, signal),
    failedEvent: 'reembed.failed',
    logFields: ({ operation, step }) => ({ operation, step }),
    // A redriven dead letter goes on where it stopped.
    onGivenUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
