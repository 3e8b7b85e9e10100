import type { Backend } from '#shared/backend.ts'
import { abandonClearing, finishClearing } from '#shared/erasure/clear.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Removes what was cleared from both stores. Each by itself: one that takes long fails no other. */
export const clear = (backend: Backend, batch: Job<'clear'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'clear'>,
): Promise<Verdict> {
  try {
    await finishClearing(backend, data, signal)
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, operation: data.operation, last }, 'clear.failed')
    if (last) await abandonClearing(backend, data)
    return { id, done: false, error: (error as Error).message }
  }
}
