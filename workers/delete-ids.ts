import type { Backend } from '#shared/backend.ts'
import { deleteMemories } from '#shared/erasure/delete-ids.ts'
import { failOperations } from '#shared/postgres/operations.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Removes single memories for good. */
export const deleteIds = (backend: Backend, batch: Job<'delete-ids'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, last }: Job<'delete-ids'>,
): Promise<Verdict> {
  try {
    await deleteMemories(backend, data)
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, operation: data.operation, last }, 'delete-ids.failed')
    if (last) await failOperations(backend.postgres.query, [data.operation])
    return { id, done: false, error: (error as Error).message }
  }
}
