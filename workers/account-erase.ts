import { finishAccountErasure } from '#shared/accounts/erase.ts'
import type { Backend } from '#shared/backend.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'

/** Looks whether erased accounts are empty by now, and signs the receipts of those that are. */
export const accountErase = (backend: Backend, batch: Job<'account-erase'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, last }: Job<'account-erase'>,
): Promise<Verdict> {
  try {
    const isDone = await finishAccountErasure(backend, data)
    if (isDone) backend.log.info({ erasure: data.operation, look: data.look }, 'account.erased')
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, erasure: data.operation, last }, 'account-erase.failed')
    return { id, done: false, error: (error as Error).message }
  }
}
