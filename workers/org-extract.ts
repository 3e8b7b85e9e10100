import type { Backend } from '#shared/backend.ts'
import { extractFacts } from '#shared/org/pipeline/extract.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { passOver } from '#workers/org-pass.ts'

/** Finds what is worth sharing in what members said. */
export const orgExtract = (backend: Backend, batch: Job<'org-extract'>[]): Promise<Verdict[]> =>
  passOver(backend, 'org-extract', batch, extractFacts)
