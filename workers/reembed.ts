import type { Backend } from '#shared/backend.ts'
import { reembedStep } from '#shared/memory/reembed.ts'
import { failOperations } from '#shared/postgres/operations.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Takes vaults a step further on their way into another vector space. */
export const reembed = (backend: Backend, batch: Job<'reembed'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'reembed'>,
): Promise<Verdict> {
  try {
    await reembedStep(backend, data, signal)
    return { id, done: true }
  } catch (error) {
    const { operation, step } = data
    backend.log.warn({ err: error, operation, step, last }, 'reembed.failed')
    // A redriven dead letter goes on where it stopped.
    if (last) await failOperations(backend.postgres.query, [operation])
    return { id, done: false, error: (error as Error).message }
  }
}
