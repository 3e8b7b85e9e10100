import type { Backend } from '#shared/backend.ts'
import { copyChunk, failChunk, isFinal } from '#shared/vault/copy/chunk.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'

/** Copies chunks of transfers and grafts. One that is given up is told in the outcome of its copy. */
export const copyChunks = (backend: Backend, batch: Job<'copy-chunk'>[]): Promise<JobOutcome[]> =>
  Promise.all(batch.map(job => runCopyJob(backend, job)))

async function runCopyJob(backend: Backend, job: Job<'copy-chunk'>): Promise<JobOutcome> {
  const { id, data, signal, isRetry, isLastTry } = job
  try {
    await copyChunk(backend, data, { again: isRetry, signal })
    return { id, done: true }
  } catch (error) {
    backend.log.warn(
      { err: error, operation: data.operation, chunk: data.n, last: isLastTry },
      'copy.failed',
    )
    if (!isLastTry && !isFinal(error)) return { id, done: false, error: (error as Error).message }
    return giveUp(backend, job, error)
  }
}

/** Only a chunk of which not even that could be written stays with the queue. */
async function giveUp(
  backend: Backend,
  { id, data }: Job<'copy-chunk'>,
  cause: unknown,
): Promise<JobOutcome> {
  try {
    await failChunk(backend, data, cause)
    return { id, done: true }
  } catch (error) {
    return { id, done: false, error: (error as Error).message }
  }
}
