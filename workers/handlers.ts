import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/queue/jobs.ts'
import type { Job, Verdict } from '#shared/queue/queue.ts'
import { ingest } from '#workers/ingest.ts'

export type Handler<Name extends JobName> = (
  backend: Backend,
  batch: Job<Name>[],
) => Promise<Verdict[]>

/** One handler per job on the queue board; a job without one does not compile. */
export const handlers: { [Name in JobName]: Handler<Name> } = { ingest }
