import type { Backend } from '#shared/backend.ts'
import { tagFacts } from '#shared/org/classify.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'
import { passOver } from '#workers/org-pass.ts'

/** Tags what was found. */
export const orgTag = (backend: Backend, batch: Job<'org-tag'>[]): Promise<Verdict[]> =>
  passOver(backend, 'org-tag', batch, tagFacts)
