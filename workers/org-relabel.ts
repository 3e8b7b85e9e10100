import type { Backend } from '#shared/backend.ts'
import { relabelMemories } from '#shared/org/relabel.ts'
import type { Job, Verdict } from '#shared/storage/queue/queue.ts'
import { inTurn } from '#workers/each.ts'

/** Gives memories the new labels of renamed tags, one tag after the other. */
export const orgRelabel = (backend: Backend, batch: Job<'org-relabel'>[]): Promise<Verdict[]> =>
  inTurn(backend, batch, {
    work: ({ data, signal }) => relabelMemories(backend, data, signal),
    failed: 'org-relabel.failed',
    about: ({ org, tag }) => ({ org, tag }),
  })
