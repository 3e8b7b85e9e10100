import type { Backend } from '#shared/backend.ts'
import { reembedStep } from '#shared/memory/reembed.ts'
import { failOperations } from '#shared/postgres/operations.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'
import { each } from '#workers/each.ts'

/** Takes vaults a step further on their way into another vector space. */
export const reembed = (backend: Backend, batch: Job<'reembed'>[]): Promise<Verdict[]> =>
  each(backend, batch, {
    work: ({ data, signal }) => reembedStep(backend, data, signal),
    failed: 'reembed.failed',
    about: ({ operation, step }) => ({ operation, step }),
    // A redriven dead letter goes on where it stopped.
    giveUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
