import type { Backend } from '#shared/backend.ts'
import { runRetentionStep } from '#shared/vault/delete/retention.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runConcurrently } from '#workers/run-jobs.ts'

/** Brings memories in line with the retention of their accounts, a page at a time. */
export const retention = (backend: Backend, batch: Job<'retention'>[]): Promise<JobOutcome[]> =>
  runConcurrently(backend, batch, {
    run: ({ data, isRetry }) => runRetentionStep(backend, data, isRetry),
    failedEvent: 'retention.failed',
    logFields: ({ operation, step }) => ({ operation, step }),
    // A redriven dead letter goes on where it stopped.
    onGivenUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
