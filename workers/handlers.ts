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
import { removeEarlierVersion } from '#shared/vault/delete/remove-earlier-version.ts'
import { runRetentionStep } from '#shared/vault/delete/retention.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import { reembedStep } from '#shared/vault/reembed/reembed.ts'
import { deliverWebhook } from '#shared/events/webhooks/deliver.ts'
import { tellAudit } from '#shared/events/webhooks/tell-audit.ts'
import {
  asBatch,
  concurrently,
  sequentially,
  type JobDefinition,
  type JobHandler,
} from '#workers/run-jobs.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { finalizeWrittenEdit } from '#shared/vault/edit/finalize-edit.postgres.ts'

/** Fails the operation until its dead letter is redriven; then it continues where it stopped. */
const failOperation = (
  { postgres, queue }: Backend,
  { data }: { data: { operation: string } },
  error: unknown,
): Promise<void> => postgres.transaction(tx => failOperations(tx, queue, [data.operation], error))

/** While one fetcher waits for a database, another one embeds the next chunk. */
const bulk: JobDefinition<'upload' | 'import'> = {
  async run(backend, { data, signal }) {
    const result = await storeChunk(backend, data, signal)
    if (result.state === 'removes-earlier') return removeEarlierVersion(backend, result.chunk)
    const { operation, n } = data
    if (result.state === 'nothing-left')
      backend.log.info({ operation, chunk: n }, 'bulk.nothing-left')
  },
  failedEvent: 'bulk.failed',
  giveUp: failOperation,
}

/** Time for the request of a commit to apply it itself. */
const commitHeadStartMs = 1_000

/** `conflict` is retried: another change of the same memory ends. */
const passDefinition = <Name extends PassName>(
  name: Name,
  run: (backend: Backend, job: Job<Name>) => Promise<Snooze | undefined | void>,
): JobDefinition<Name> => ({
  run: (backend, job) => runPass(backend, { ...job, name }, () => run(backend, job)),
  failedEvent: `${name}.failed`,
  givenUpLevel: 'error',
  alsoRetried: ['conflict'],
  isObsolete: isTurnGone,
})

/** A turn is removed with its organization and with its member. False while the database does not answer. */
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
      const jobs = batch.map(({ data }) => data)
      return storeAccepted(backend, jobs, {
        again: batch.some(({ isRetry }) => isRetry),
        signal: AbortSignal.any(batch.map(({ signal }) => signal)),
        claims: new Map(batch.map(({ id, claim }) => [id, claim])),
      })
    },
    failedEvent: 'ingest.failed',
    giveUp: failOperation,
  }),
  upload: sequentially(bulk),
  import: sequentially(bulk),
  'edit-settle': concurrently({
    run: (backend, { data }) => finalizeWrittenEdit(backend, data),
    failedEvent: 'edit.unsettled',
  }),
  'commit-apply': concurrently({
    async run(backend, job) {
      const { data, isRetry } = job
      if (!isRetry) {
        await waitForCommit(backend.postgres.query, data, data.batch, commitHeadStartMs)
      }
      await applyCommit(backend, data)
      // The job holds texts: a deletion is complete only without it.
      await backend.postgres.transaction(tx => backend.queue.complete(tx, 'commit-apply', [job]))
      return { isRemoved: true }
    },
    failedEvent: 'commit.failed',
  }),
  'copy-chunk': concurrently({
    run: (backend, { data, signal, isRetry }) =>
      copyChunk(backend, data, { again: isRetry, signal }),
    failedEvent: 'copy.failed',
    giveUp: (backend, { data }, error) => failChunk(backend, data, error),
    isDoneOnceGivenUp: true,
  }),
  reembed: concurrently({
    run: (backend, { data, signal }) => reembedStep(backend, data, signal),
    failedEvent: 'reembed.failed',
    giveUp: failOperation,
  }),
  'delete-ids': concurrently({
    run: (backend, { data }) => executeDeletion(backend, data),
    failedEvent: 'delete-ids.failed',
    giveUp: failOperation,
  }),
  retention: concurrently({
    run: (backend, { data, isRetry }) => runRetentionStep(backend, data, isRetry),
    failedEvent: 'retention.failed',
    giveUp: failOperation,
  }),
  clear: concurrently({
    run: (backend, { data, signal }) => finishClearing(backend, data, signal),
    failedEvent: 'clear.failed',
    giveUp: (backend, { data }) => abandonClearing(backend, data),
  }),
  'account-erase': concurrently({
    async run(backend, { data: { operation, look } }) {
      const isDone = await finishAccountErasure(backend, { operation, look })
      if (isDone) backend.log.info({ erasure: operation, look }, 'account.erased')
    },
    failedEvent: 'account-erase.failed',
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
  }),
  'org-tag-run': concurrently({
    run: (backend, { data, signal }) => applyTag(backend, data, signal),
    alsoRetried: ['conflict'],
    failedEvent: 'org-tag-run.failed',
  }),
  webhook: concurrently({
    run: (backend, { data, signal }) => deliverWebhook(backend, data, signal),
    failedEvent: 'webhooks.not-delivered',
  }),
  audit: sequentially({
    run: (backend, { signal }) => tellAudit(backend, signal),
    failedEvent: 'audit.not-told',
  }),
  sweep: sequentially({
    async run(backend) {
      await sweepAll(backend)
    },
    failedEvent: 'sweep.failed',
  }),
}
