import type { Backend } from '#shared/backend.ts'
import { settleWritten } from '#shared/vault/edit/edit.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { each } from '#workers/each.ts'

/** Settles the edits whose requests died between writing and settling; most it finds settled. */
export const editSettle = (backend: Backend, batch: Job<'edit-settle'>[]): Promise<Verdict[]> =>
  each(backend, batch, {
    work: ({ data }) => settleWritten(backend, data),
    failed: 'edit.unsettled',
    about: ({ operation }) => ({ operation }),
  })
