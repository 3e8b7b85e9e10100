import type { Backend } from '#shared/backend.ts'
import { finishAccountErasure } from '#shared/accounts/erase-account.ts'
import type { JobName } from '#shared/domain/jobs.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { findTurn } from '#shared/org/base/org-turns.postgres.ts'
import { extractFacts } from '#shared/org/pipeline/extract-facts.ts'
import { reconcileFacts } from '#shared/org/pipeline/reconcile-facts.ts'
import { runPass, type PassName } from '#shared/org/pipeline/run-pass.ts'
import { tagFacts } from '#shared/org/pipeline/tag-facts.ts'
import { applyTag } from '#shared/org/pipeline/apply-tag.ts'
import { relabelMemories } from '#shared/org/memories/relabel-memories.ts'
import type { Snooze } from '#shared/storage/queue/job-outcome.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { applyCommit, waitForCommit } from '#shared/vault/consolidate/apply-commit.ts'
import { copyChunk } from '#shared/vault/copy/chunk.ts'
import { failChunk } from '#shared/vault/copy/settle-chunk.ts'
import { abandonClearing, finishClearing } from '#shared/vault/delete/clear-vault.ts'
import { executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { runRetentionStep } from '#shared/vault/delete/retention.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { reembedStep } from '#shared/vault/reembed/reembed.ts'
import { deliverWebhook } from '#shared/events/webhooks/deliver.ts'
import { asBatch, concurrently, sequentially, type JobDefinition, type JobHandler } from '#workers/run-jobs.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { finalizeWrittenEdit } from '#shared/vault/edit/finalize-edit.postgres.ts'

/** The operation has failed until its dead letter is redriven; then it goes on where it stopped. */
const failOperation = (
  { postgres, queue }: Backend,
  { data }: { data: { operation: string } },
  error: unknown,
): Promise<void> => postgres.transaction(tx => failOperations(tx, queue, [data.operation], error))

/** Another fetcher of this process embeds the next chunk while one waits for a database. */
const bulk: JobDefinition<'upload' | 'import'> = {
  async run(backend, { data, signal }) {
    const result = await storeChunk(backend, data, signal)
    const { operation, n } = data
    // Settled before, then the operation goes on by itself; or its vault was erased with the file.
    if (!result) backend.log.info({ operation, chunk: n }, 'bulk.nothing-left')
  },
  failedEvent: 'bulk.failed',
  logFields: ({ operation, n }) => ({ operation, chunk: n }),
  giveUp: failOperation,
}

/** A commit is normally applied by its own request, in milliseconds; the job waits for that. */
const commitHeadStartMs = 1_000

/**
 * One pass over a turn. `conflict` is retried: others may stop changing the same memory.
 */
const passDefinition = <Name extends PassName>(
  name: Name,
  run: (backend: Backend, job: Job<Name>) => Promise<Snooze | undefined | void>,
): JobDefinition<Name> => ({
  run: (backend, job) => runPass(backend, { ...job, name }, () => run(backend, job)),
  failedEvent: `${name}.failed`,
  logFields: ({ turn, org }) => ({ turn, org }),
  givenUpLevel: 'error',
  alsoRetried: ['conflict'],
  isObsolete: isTurnGone,
})

/** A turn is removed with its organization and with its member. False while the database is away. */
const isTurnGone = ({ postgres }: Backend, { data }: Job<PassName>): Promise<boolean> =>
  findTurn(postgres.query, data.turn).then(
    row => row === undefined,
    () => false,
  )

/** One handler per job on the queue board; a job without one does not compile. */
export const jobHandlers: { [Name in JobName]: JobHandler<Name> } = {
  ingest: asBatch({
    groupOf: ({ model }) => model,
    async runBatch(backend, batch) {
      const isRemoved = await storeAccepted(
        backend,
        batch.map(({ data }) => data),
        {
          again: batch.some(({ isRetry }) => isRetry),
          signal: AbortSignal.any(batch.map(({ signal }) => signal)),
          complete: tx => backend.queue.complete(tx, 'ingest', batch),
        },
      )
      return { isRemoved }
    },
    failedEvent: 'ingest.failed',
    logFields: ({ operation }) => ({ operation }),
    giveUp: failOperation,
  }),
  upload: sequentially(bulk),
  import: sequentially(bulk),
  'edit-settle': concurrently({
    run: (backend, { data }) => finalizeWrittenEdit(backend, data),
    failedEvent: 'edit.unsettled',
    logFields: ({ operation }) => ({ operation }),
  }),
  'commit-apply': concurrently({
    async run(backend, job) {
      const { data, isRetry } = job
      if (!isRetry) {
        await waitForCommit(backend.postgres.query, data, data.batch, commitHeadStartMs)
      }
      await applyCommit(backend, data)
      // Its texts end with it: a deletion of them is complete when its operation is.
      await backend.postgres.transaction(tx => backend.queue.complete(tx, 'commit-apply', [job]))
      return { isRemoved: true }
    },
    failedEvent: 'commit.failed',
    logFields: ({ batch }) => ({ batch }),
  }),
  'copy-chunk': concurrently({
    run: (backend, { data, signal, isRetry }) =>
      copyChunk(backend, data, { again: isRetry, signal }),
    failedEvent: 'copy.failed',
    logFields: ({ operation, n }) => ({ operation, chunk: n }),
    giveUp: (backend, { data }, error) => failChunk(backend, data, error),
    isDoneOnceGivenUp: true,
  }),
  reembed: concurrently({
    run: (backend, { data, signal }) => reembedStep(backend, data, signal),
    failedEvent: 'reembed.failed',
    logFields: ({ operation, n }) => ({ operation, step: n }),
    giveUp: failOperation,
  }),
  'delete-ids': concurrently({
    run: (backend, { data }) => executeDeletion(backend, data),
    failedEvent: 'delete-ids.failed',
    logFields: ({ operation }) => ({ operation }),
    giveUp: failOperation,
  }),
  retention: concurrently({
    run: (backend, { data, isRetry }) => runRetentionStep(backend, data, isRetry),
    failedEvent: 'retention.failed',
    logFields: ({ operation, n }) => ({ operation, step: n }),
    giveUp: failOperation,
  }),
  clear: concurrently({
    run: (backend, { data, signal }) => finishClearing(backend, data, signal),
    failedEvent: 'clear.failed',
    logFields: ({ operation }) => ({ operation }),
    giveUp: (backend, { data }) => abandonClearing(backend, data),
  }),
  'account-erase': concurrently({
    async run(backend, { data: { operation, look } }) {
      const isDone = await finishAccountErasure(backend, { operation, look })
      if (isDone) backend.log.info({ erasure: operation, look }, 'account.erased')
    },
    failedEvent: 'account-erase.failed',
    logFields: ({ operation }) => ({ erasure: operation }),
  }),
  'org-extract': concurrently(
    passDefinition('org-extract', (backend, { data, signal }) =>
      extractFacts(backend, data, signal),
    ),
  ),
  'org-tag': concurrently(
    passDefinition('org-tag', (backend, { data, signal }) => tagFacts(backend, data, signal)),
  ),
  'org-reconcile': concurrently(
    passDefinition('org-reconcile', (backend, { data, signal }) =>
      reconcileFacts(backend, data, signal),
    ),
  ),
  'org-relabel': sequentially({
    run: (backend, { data, signal }) => relabelMemories(backend, data, signal),
    alsoRetried: ['conflict'],
    failedEvent: 'org-relabel.failed',
    logFields: ({ org, tag }) => ({ org, tag }),
  }),
  'org-tag-run': concurrently({
    run: (backend, { data, signal }) => applyTag(backend, data, signal),
    alsoRetried: ['conflict'],
    failedEvent: 'org-tag-run.failed',
    logFields: ({ org, run }) => ({ org, run }),
  }),
  webhook: concurrently({
    run: (backend, { data, signal }) => deliverWebhook(backend, data, signal),
    failedEvent: 'webhooks.not-delivered',
    logFields: ({ delivery }) => ({ delivery }),
  }),
  sweep: sequentially({
    async run(backend) {
      await sweepAll(backend)
    },
    failedEvent: 'sweep.failed',
    logFields: () => ({}),
  }),
}
