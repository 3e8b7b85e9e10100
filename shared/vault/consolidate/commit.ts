import { withEmbeddingTimeout } from '#shared/models/model-refusal.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { isUuid, memoryIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { expiryFor } from '#shared/domain/expiry.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'
import { commitLease, findLease } from '#shared/vault/consolidate/leases.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import { applyCommit, waitForCommit } from '#shared/vault/consolidate/apply-commit.ts'
import {
  consolidationLock,
  tierAbove,
  type CreatedReflection,
  type LeaseWithState,
  type TargetTier,
} from '#shared/domain/lease.ts'
import { requireStandaloneProse } from '#shared/vault/consolidate/output-contract.ts'
import { mapInSlices } from '#shared/core/event-loop.ts'
import { countTokensInSlices } from '#shared/core/tokens.ts'
import type { CommitJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

type ReflectionEntry = { text: string; importance: number }

export type CommitResult = {
  tier: TargetTier
  /** In the order of the entries. */
  created: CreatedReflection[]
  /** Number of memories it consolidates: those of the batch that still existed. */
  sources: number
  alreadyCommitted: boolean
}

type CommitBackend = Stores & {
  memories: MemoryStore
  embedders: Embedders
  queue: Queue
  log: Log
}

/** Longest wait for a concurrent commit of the batch; once accepted it is committed anyway. */
const concurrentCommitWaitMs = 10_000

/** Longest that a commit waits for the vectors of its reflections, which may be a hundred long texts. */
const commitEmbeddingMs = 30_000

/**
 * Turns a leased batch into reflections, exactly once.
 *
 * The entries are embedded first: when that fails the batch stays leased. Then one transaction changes the lease
 * to `committing` and writes bill and job: from there on the batch is committed, whatever process dies. The
 * reflections are stored at once so that the next search finds them; the job does the rest.
 *
 * @returns the reflections; of a batch committed before, those of that commit, and nothing is written or billed.
 * @throws Refusal `missing` when this vault has no such batch or was cleared since; `conflict` when its 15
 *   minutes are over; `invalid` for an entry that is no standalone prose, or that the policy blocks; `unpaid`
 *   when the balance is used up; `upstream` when the embedding model does not answer.
 */
export async function commitBatch(
  backend: CommitBackend,
  caller: Caller,
  commit: {
    /** The UUIDv7 this commit is billed under. */
    operation: string
    batch: string
    entries: readonly ReflectionEntry[]
  },
): Promise<CommitResult> {
  const { query } = backend.postgres
  const lease = await findCommittableLease(query, caller.scope, commit.batch)
  if (lease.state === 'leased') {
    requireBalance(caller)
    requireStandaloneProse(commit.entries)
    const entries = await redactEntries(caller, commit.entries)
    const job = await buildCommitJob(backend, caller, lease, entries)
    if (await acceptCommit(backend, caller, { job, operation: commit.operation })) {
      const sources = await applyNow(backend, job, lease)
      if (sources === null) throw refusalOf(undefined)
      return commitResult(lease, {
        created: createdReflections(job),
        sources,
        alreadyCommitted: false,
      })
    }
  }
  const finalLease = await waitForCommit(query, caller.scope, commit.batch, concurrentCommitWaitMs)
  if (!finalLease || finalLease.state === 'leased') throw refusalOf(finalLease)
  const { created, consolidated: sources } = finalLease
  return commitResult(lease, { created, sources, alreadyCommitted: true })
}

/** A lease that can be committed or has been. */
async function findCommittableLease(
  query: CommitBackend['postgres']['query'],
  scope: Caller['scope'],
  batch: string,
): Promise<LeaseWithState> {
  const lease = isUuid(batch) ? await findLease(query, scope, batch) : undefined
  if (!lease || (lease.state === 'leased' && lease.expired)) throw refusalOf(lease)
  return lease
}

const refusalOf = (lease: LeaseWithState | undefined): Refusal =>
  lease
    ? refusal('conflict', 'leaseOver')
    : new Refusal('missing', 'No such batch', 'batch_id is the one a checkout answered')

const redactEntries = (
  { keyRow }: Caller,
  entries: readonly ReflectionEntry[],
): Promise<ReflectionEntry[]> =>
  mapInSlices(entries, ({ text, importance }, index) => ({
    text: applyRedaction(keyRow.redaction, text, `entries[${index}].text`),
    importance,
  }))

/** The reflections with their ids, from batch and index, and their vectors. */
async function buildCommitJob(
  { embedders }: CommitBackend,
  { scope, keyRow }: Caller,
  { batch, tier, model, covers }: LeaseWithState,
  entries: readonly ReflectionEntry[],
): Promise<CommitJob> {
  const embedder = await embedders.get(model)
  const embedding = embedder.embedTexts(entries.map(({ text }) => text))
  const vectors = await withEmbeddingTimeout(embedding, embedder.model, commitEmbeddingMs)
  const { retentionDays: days } = keyRow
  return {
    batch,
    vault: scope.vault,
    epoch: scope.epoch,
    space: embedder.space,
    tier: tierAbove(tier),
    covers,
    ...expiryFor({ requested: null, days, storedAt: Date.now() }),
    ...(days !== null && { retentionDays: days }),
    reflections: await mapInSlices(entries, async ({ text, importance }, index) => {
      const { buffer, byteOffset, byteLength } = vectors[index]!
      return {
        id: memoryIdOf(batch, index),
        text,
        tokens: await countTokensInSlices(text),
        importance,
        vector: Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
      }
    }),
  }
}

/** @returns false, with nothing written or billed, when the batch is committed already or its lease expired. */
function acceptCommit(
  { postgres, queue }: CommitBackend,
  { scope, account, keyHash }: Caller,
  { job, operation }: { job: CommitJob; operation: string },
): Promise<boolean> {
  return postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, scope.vault, consolidationLock)
    if (!(await commitLease(tx, scope, job.batch, createdReflections(job)))) return false
    await recordBill(tx, {
      id: operation,
      account,
      vault: scope.vault,
      keyHash,
      kind: 'commit',
      memoryTokens: job.reflections.reduce((sum, { tokens }) => sum + tokens, 0),
    })
    await queue.send(tx, 'commit-apply', [{ id: operation, data: job, priority: 0 }])
    return true
  })
}

/** @returns how many sources are marked, or will be; null when the vault was cleared since. */
async function applyNow(
  backend: CommitBackend,
  job: CommitJob,
  lease: LeaseWithState,
): Promise<number | null> {
  try {
    return await applyCommit(backend, job)
  } catch (error) {
    backend.log.warn({ err: error, batch: job.batch }, 'commit.left-to-the-job')
    return lease.sourceIds.length
  }
}

const createdReflections = ({ reflections }: CommitJob): CreatedReflection[] =>
  reflections.map(({ id, importance }) => ({ id, importance }))

function commitResult(
  { tier, sourceIds }: LeaseWithState,
  {
    created,
    sources,
    alreadyCommitted,
  }: {
    created: CreatedReflection[]
    sources: number | null
    alreadyCommitted: boolean
  },
): CommitResult {
  return { tier: tierAbove(tier), created, sources: sources ?? sourceIds.length, alreadyCommitted }
}
