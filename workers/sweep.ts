import type { Backend } from '#shared/backend.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'

/** Cleans up. What fails is logged and tried again by the next run, a minute later. */
export async function sweep(backend: Backend, batch: Job<'sweep'>[]): Promise<JobOutcome[]> {
  await sweepAll(backend)
  return batch.map(({ id }) => ({ id, done: true }))
}
