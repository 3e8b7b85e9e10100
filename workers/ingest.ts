import type { Backend } from '#shared/backend.ts'
import { storePromised } from '#shared/vault/ingest/store-accepted.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'

/**
 * Stores what was promised, a batch in one go. When the batch fails each job is tried alone, so that
 * one that cannot be stored holds up no other.
 */
export async function ingest(backend: Backend, batch: Job<'ingest'>[]): Promise<Verdict[]> {
  if (batch.length > 1 && (await attempt(backend, batch)) === null) return batch.map(doneOf)
  const verdicts: Verdict[] = []
  for (const job of batch) verdicts.push(await verdictOf(backend, job))
  return verdicts
}

async function verdictOf(backend: Backend, job: Job<'ingest'>): Promise<Verdict> {
  const error = await attempt(backend, [job])
  if (error === null) return doneOf(job)
  backend.log.warn({ err: error, operation: job.data.operation, last: job.last }, 'ingest.failed')
  if (job.last) await failOperations(backend.postgres.query, [job.data.operation])
  return { id: job.id, done: false, error: error.message }
}

const doneOf = ({ id }: Job<'ingest'>): Verdict => ({ id, done: true })

/** @returns what went wrong, or null. */
async function attempt(backend: Backend, batch: Job<'ingest'>[]): Promise<Error | null> {
  try {
    const promised = batch.map(({ data }) => data)
    const signal = batch.length === 1 ? batch[0]!.signal : AbortSignal.any(batch.map(s => s.signal))
    await storePromised(backend, promised, { again: batch.some(({ again }) => again), signal })
    return null
  } catch (error) {
    return error as Error
  }
}
