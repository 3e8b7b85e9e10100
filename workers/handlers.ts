import type { Backend } from '#shared/backend.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import type { Job, JobOutcome } from '#shared/storage/queue/queue.ts'
import { accountErase } from '#workers/account-erase.ts'
import { bulk } from '#workers/bulk.ts'
import { clear } from '#workers/clear.ts'
import { commitApply } from '#workers/commit-apply.ts'
import { copyChunks } from '#workers/copy-chunk.ts'
import { deleteIds } from '#workers/delete-ids.ts'
import { editSettle } from '#workers/edit-settle.ts'
import { ingest } from '#workers/ingest.ts'
import { orgExtract } from '#workers/org-extract.ts'
import { orgReconcile } from '#workers/org-reconcile.ts'
import { orgRelabel } from '#workers/org-relabel.ts'
import { orgTag } from '#workers/org-tag.ts'
import { retention } from '#workers/retention.ts'
import { sweep } from '#workers/sweep.ts'
import { reembed } from '#workers/reembed.ts'

export type JobHandler<Name extends JobName> = (
  backend: Backend,
  batch: Job<Name>[],
) => Promise<JobOutcome[]>

/** One handler per job on the queue board; a job without one does not compile. */
export const jobHandlers: { [Name in JobName]: JobHandler<Name> } = {
  ingest,
  upload: bulk,
  import: bulk,
  'edit-settle': editSettle,
  'commit-apply': commitApply,
  'copy-chunk': copyChunks,
  reembed,
  'delete-ids': deleteIds,
  retention,
  clear,
  'account-erase': accountErase,
  'org-extract': orgExtract,
  'org-tag': orgTag,
  'org-reconcile': orgReconcile,
  'org-relabel': orgRelabel,
  sweep,
}
