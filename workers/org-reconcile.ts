import type { Backend } from '#shared/backend.ts'
import { reconcileFacts } from '#shared/org/pipeline/reconcile.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { passOver } from '#workers/org-pass.ts'

/** Brings what was found and tagged into the shared memory. */
export const orgReconcile = (backend: Backend, batch: Job<'org-reconcile'>[]): Promise<Verdict[]> =>
  passOver(backend, 'org-reconcile', batch, reconcileFacts)
