import type { Backend } from '#shared/backend.ts'
import { tagFacts } from '#shared/org/classify.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Tags what was found. Each by itself: one whose model fails holds up no other. */
export const orgTag = (backend: Backend, batch: Job<'org-tag'>[]): Promise<Verdict[]> =>
  Promise.all(batch.map(job => verdictOf(backend, job)))

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'org-tag'>,
): Promise<Verdict> {
  try {
    await tagFacts(backend, data, signal)
    return { id, done: true }
  } catch (error) {
    const { turn, org } = data
    backend.log[last ? 'error' : 'warn']({ err: error, turn, org, last }, 'org-tag.failed')
    return { id, done: false, error: (error as Error).message }
  }
}
