import type { Backend } from '#shared/backend.ts'
import { storeChunk } from '#shared/bulk/store.ts'
import { failOperations } from '#shared/postgres/operations.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/**
 * Stores chunks of uploaded and imported files, one after the other: while one waits for a database the
 * other fetcher of this process embeds the next.
 */
export async function bulk(
  backend: Backend,
  batch: Job<'upload' | 'import'>[],
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const job of batch) verdicts.push(await verdictOf(backend, job))
  return verdicts
}

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'upload' | 'import'>,
): Promise<Verdict> {
  const { operation, n } = data
  try {
    const found = await storeChunk(backend, data, signal)
    // Settled before, then the operation goes on by itself; or its vault was erased with the file.
    if (!found) backend.log.info({ operation, chunk: n }, 'bulk.nothing-left')
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, operation, chunk: n, last }, 'bulk.failed')
    if (last) await failOperations(backend.postgres.query, [operation])
    return { id, done: false, error: (error as Error).message }
  }
}
