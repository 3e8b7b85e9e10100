import type { Backend } from '#shared/backend.ts'
import { reconcileFacts } from '#shared/org/reconcile.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Brings what was found and tagged into the shared memory. Each by itself: one whose model fails holds up no other. */
export const orgReconcile = (backend: Backend, batch: Job<'org-reconcile'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'org-reconcile'>,
): Promise<Verdict> {
  try {
    await reconcileFacts(backend, data, signal)
    return { id, done: true }
  } catch (error) {
    const { turn, org } = data
    backend.log[last ? 'error' : 'warn']({ err: error, turn, org, last }, 'org-reconcile.failed')
    return { id, done: false, error: (error as Error).message }
  }
}
