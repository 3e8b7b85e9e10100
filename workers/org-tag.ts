import type { Backend } from '#shared/backend.ts'
import { tagFacts } from '#shared/org/pipeline/classify.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { passOver } from '#workers/org-pass.ts'

/** Tags what was found. */
export const orgTag = (backend: Backend, batch: Job<'org-tag'>[]): Promise<Verdict[]> =>
  passOver(backend, 'org-tag', batch, tagFacts)
