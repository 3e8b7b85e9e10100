import type { Backend } from '#shared/backend.ts'
import { deleteMemories } from '#shared/vault/delete/delete-ids.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { each } from '#workers/each.ts'

/** Removes single memories for good. */
export const deleteIds = (backend: Backend, batch: Job<'delete-ids'>[]): Promise<Verdict[]> =>
  each(backend, batch, {
    work: ({ data }) => deleteMemories(backend, data),
    failed: 'delete-ids.failed',
    about: ({ operation }) => ({ operation }),
    giveUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
