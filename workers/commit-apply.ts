import type { Backend } from '#shared/backend.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { applyCommit } from '#shared/vault/consolidate/apply.ts'
import { settledLease } from '#shared/vault/consolidate/finished.ts'
import { each } from '#workers/each.ts'

/** The request that promised a commit fulfils it itself, in milliseconds; then nothing is left to do. */
const headStartMs = 1_000

/** Finishes what the requests that committed batches have left undone, or finds it done. */
export const commitApply = (backend: Backend, batch: Job<'commit-apply'>[]): Promise<Verdict[]> =>
  each(backend, batch, {
    async work({ data, again }) {
      if (!again) await settledLease(backend.postgres.query, data, data.batch, headStartMs)
      await applyCommit(backend, data)
    },
    failed: 'commit.failed',
    about: data => ({ batch: data.batch }),
  })
