import type { Backend } from '#shared/backend.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'

/**
 * Stores what was promised, a batch in one go. When the batch fails each job is tried alone, so that
 * one that cannot be stored holds up no other.
 */
export async function ingest(backend: Backend, batch: Job<'ingest'>[]): Promise<JobOutcome[]> {
  if (batch.length > 1 && (await tryToStore(backend, batch)) === null) return batch.map(doneResult)
  const results: JobOutcome[] = []
  for (const job of batch) results.push(await runIngestJob(backend, job))
  return results
}

async function runIngestJob(backend: Backend, job: Job<'ingest'>): Promise<JobOutcome> {
  const error = await tryToStore(backend, [job])
  if (error === null) return doneResult(job)
  backend.log.warn(
    { err: error, operation: job.data.operation, last: job.isLastTry },
    'ingest.failed',
  )
  if (job.isLastTry) await failOperations(backend.postgres.query, [job.data.operation])
  return { id: job.id, done: false, error: error.message }
}

const doneResult = ({ id }: Job<'ingest'>): JobOutcome => ({ id, done: true })

/** @returns what went wrong, or null. */
async function tryToStore(backend: Backend, batch: Job<'ingest'>[]): Promise<Error | null> {
  try {
    const accepted = batch.map(({ data }) => data)
    const signal = batch.length === 1 ? batch[0]!.signal : AbortSignal.any(batch.map(s => s.signal))
    await storeAccepted(backend, accepted, {
      again: batch.some(({ isRetry }) => isRetry),
      signal,
    })
    return null
  } catch (error) {
    return error as Error
  }
}
