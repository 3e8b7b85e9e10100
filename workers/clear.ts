import type { Backend } from '#shared/backend.ts'
import { abandonClearing, finishClearing } from '#shared/vault/delete/clear.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { each } from '#workers/each.ts'

/** Removes what was cleared from both stores. */
export const clear = (backend: Backend, batch: Job<'clear'>[]): Promise<Verdict[]> =>
  each(backend, batch, {
    work: ({ data, signal }) => finishClearing(backend, data, signal),
    failed: 'clear.failed',
    about: ({ operation }) => ({ operation }),
    giveUp: ({ data }) => abandonClearing(backend, data),
  })
