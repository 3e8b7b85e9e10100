import type { Backend } from '#shared/backend.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { applyCommit } from '#shared/vault/consolidate/apply-commit.ts'
import { waitForCommit } from '#shared/vault/consolidate/wait-for-commit.ts'
import { runConcurrently } from '#workers/run-jobs.ts'

/** The request that promised a commit fulfils it itself, in milliseconds; then nothing is left to do. */
const headStartMs = 1_000

/** Finishes what the requests that committed batches have left undone, or finds it done. */
export const commitApply = (
  backend: Backend,
  batch: Job<'commit-apply'>[],
): Promise<JobOutcome[]> =>
  runConcurrently(backend, batch, {
    async run({ data, isRetry }) {
      if (!isRetry) await waitForCommit(backend.postgres.query, data, data.batch, headStartMs)
      await applyCommit(backend, data)
    },
    failedEvent: 'commit.failed',
    logFields: data => ({ batch: data.batch }),
  })
