import type { Backend } from '#shared/backend.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'
import { applyCommit } from '#shared/reflection/apply.ts'
import { settledLease } from '#shared/reflection/settled.ts'

/** The request that promised a commit fulfils it itself, in milliseconds; then nothing is left to do. */
const headStartMs = 1_000

/** Finishes what the requests that committed batches have left undone, or finds it done. */
export const commitApply = (backend: Backend, batch: Job<'commit-apply'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, again, last }: Job<'commit-apply'>,
): Promise<Verdict> {
  try {
    if (!again) await settledLease(backend.postgres.query, data, data.batch, headStartMs)
    await applyCommit(backend, data)
    return { id, done: true }
  } catch (error) {
    backend.log.warn({ err: error, batch: data.batch, last }, 'commit.failed')
    return { id, done: false, error: (error as Error).message }
  }
}
