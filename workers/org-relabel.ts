import type { Backend } from '#shared/backend.ts'
import { relabelMemories } from '#shared/org/relabel-memories.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runSequentially } from '#workers/run-jobs.ts'

/** Gives memories the new labels of renamed tags, one tag after the other. */
export const orgRelabel = (backend: Backend, batch: Job<'org-relabel'>[]): Promise<JobOutcome[]> =>
  runSequentially(backend, batch, {
    run: ({ data, signal }) => relabelMemories(backend, data, signal),
    failedEvent: 'org-relabel.failed',
    logFields: ({ org, tag }) => ({ org, tag }),
  })
