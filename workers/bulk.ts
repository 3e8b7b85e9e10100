import type { Backend } from '#shared/backend.ts'
import { storeChunk } from '#shared/vault/bulk/store.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { inTurn } from '#workers/each.ts'

/**
 * Stores chunks of uploaded and imported files, one after the other: while one waits for a database the
 * other fetcher of this process embeds the next.
 */
export const bulk = (backend: Backend, batch: Job<'upload' | 'import'>[]): Promise<Verdict[]> =>
  inTurn(backend, batch, {
    async work({ data, signal }) {
      const found = await storeChunk(backend, data, signal)
      const { operation, n } = data
      // Settled before, then the operation goes on by itself; or its vault was erased with the file.
      if (!found) backend.log.info({ operation, chunk: n }, 'bulk.nothing-left')
    },
    failed: 'bulk.failed',
    about: ({ operation, n }) => ({ operation, chunk: n }),
    giveUp: ({ data }) => failOperations(backend.postgres.query, [data.operation]),
  })
