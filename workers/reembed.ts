import type { Backend } from '#shared/backend.ts'
import { reembedStep } from '#shared/vault/reembed/reembed.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
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
