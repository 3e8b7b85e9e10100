import type { Backend } from '#shared/backend.ts'
import { tagFacts } from '#shared/org/pipeline/tag-facts.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runPass } from '#workers/org-pass.ts'

/** Tags what was found. */
export const orgTag = (backend: Backend, batch: Job<'org-tag'>[]): Promise<JobOutcome[]> =>
  runPass(backend, 'org-tag', batch, tagFacts)
