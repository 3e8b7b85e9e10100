import type { Backend } from '#shared/backend.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runSequentially } from '#workers/run-jobs.ts'

/**
 * Stores chunks of uploaded and imported files, one after the other: while one waits for a database the
 * other fetcher of this process embeds the next.
 */
export const bulk = (backend: Backend, batch: Job<'upload' | 'import'>[]): Promise<JobOutcome[]> =>
  runSequentially(backend, batch, {
    async run({ data, signal }) {
      const found = await storeChunk(backend, data, signal)
      const { operation, n } = data
      // Settled before, then the operation goes on by itself; or its vault was erased with the file.
      if (!found) backend.log.info({ operation, chunk: n }, 'bulk.nothing-left')
    },
    failedEvent: 'bulk.failed',
    logFields: ({ operation, n }) => ({ operation, chunk: n }),
    onGivenUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
