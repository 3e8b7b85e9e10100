import type { Backend } from '#shared/backend.ts'
import { extractFacts } from '#shared/org/extract.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Finds what is worth sharing in what members said. Each by itself: one whose model fails holds up no other. */
export const orgExtract = (backend: Backend, batch: Job<'org-extract'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'org-extract'>,
): Promise<Verdict> {
  try {
    await extractFacts(backend, data, signal)
    return { id, done: true }
  } catch (error) {
    const { turn, org } = data
    backend.log[last ? 'error' : 'warn']({ err: error, turn, org, last }, 'org-extract.failed')
    return { id, done: false, error: (error as Error).message }
  }
}
