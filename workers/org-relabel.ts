import type { Backend } from '#shared/backend.ts'
import { relabelMemories } from '#shared/org/relabel.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'

/** Gives memories the new labels of renamed tags, one tag after the other. */
export async function orgRelabel(
  backend: Backend,
  batch: Job<'org-relabel'>[],
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const job of batch) verdicts.push(await verdictOf(backend, job))
  return verdicts
}

async function verdictOf(
  backend: Backend,
  { id, data, signal, last }: Job<'org-relabel'>,
): Promise<Verdict> {
  try {
    await relabelMemories(backend, data, signal)
    return { id, done: true }
  } catch (error) {
    const { org, tag } = data
    backend.log.warn({ err: error, org, tag, last }, 'org-relabel.failed')
    return { id, done: false, error: (error as Error).message }
  }
}
