import type { Backend } from '#shared/backend.ts'
import { copyChunk, failChunk, isFinal } from '#shared/vault/copy/chunk.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'

/** Copies chunks of transfers and grafts. One that is given up is told in the outcome of its copy. */
export const copyChunks = (backend: Backend, batch: Job<'copy-chunk'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(backend: Backend, job: Job<'copy-chunk'>): Promise<Verdict> {
  const { id, data, signal, again, last } = job
  try {
    await copyChunk(backend, data, { again, signal })
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, operation: data.operation, chunk: data.n, last }, 'copy.failed')
    if (!last && !isFinal(error)) return { id, done: false, error: (error as Error).message }
    return giveUp(backend, job, error)
  }
}

/** Only a chunk of which not even that could be written stays with the queue. */
async function giveUp(
  backend: Backend,
  { id, data }: Job<'copy-chunk'>,
  cause: unknown,
): Promise<Verdict> {
  try {
    await failChunk(backend, data, cause)
    return { id, done: true }
  } catch (error) {
    return { id, done: false, error: (error as Error).message }
  }
}
