import type { Backend } from '#shared/backend.ts'
import { reconcileFacts } from '#shared/org/pipeline/reconcile-facts.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runPass } from '#workers/org-pass.ts'

/** Brings what was found and tagged into the shared memory. */
export const orgReconcile = (
  backend: Backend,
  batch: Job<'org-reconcile'>[],
): Promise<JobOutcome[]> => runPass(backend, 'org-reconcile', batch, reconcileFacts)
