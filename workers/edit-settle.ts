import type { Backend } from '#shared/backend.ts'
import { settleWritten } from '#shared/memory/edit.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Settles the edits whose requests died between writing and settling; most it finds settled. */
export const editSettle = (backend: Backend, batch: Job<'edit-settle'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, last }: Job<'edit-settle'>,
): Promise<Verdict> {
  try {
    await settleWritten(backend, data)
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, operation: data.operation, last }, 'edit.unsettled')
    return { id, done: false, error: (error as Error).message }
  }
}
