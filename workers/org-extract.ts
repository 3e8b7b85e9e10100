import type { Backend } from '#shared/backend.ts'
import { extractFacts } from '#shared/org/pipeline/extract-facts.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { runPass } from '#workers/org-pass.ts'

/** Finds what is worth sharing in what members said. */
export const orgExtract = (backend: Backend, batch: Job<'org-extract'>[]): Promise<JobOutcome[]> =>
  runPass(backend, 'org-extract', batch, extractFacts)
