import type { Backend } from '#shared/backend.ts'
import { retentionStep } from '#shared/vault/delete/retention.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { each } from '#workers/each.ts'

/** Brings memories in line with the retention of their accounts, a page at a time. */
export const retention = (backend: Backend, batch: Job<'retention'>[]): Promise<Verdict[]> =>
  each(backend, batch, {
    work: ({ data, again }) => retentionStep(backend, data, again),
    failed: 'retention.failed',
    about: ({ operation, step }) => ({ operation, step }),
    // A redriven dead letter goes on where it stopped.
    giveUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
