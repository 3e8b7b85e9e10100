import { requireBalance } from '#shared/billing/requirements.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid, memoryIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { endsOf } from '#shared/domain/expiry.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'
import { fenceLease, findLease } from '#shared/vault/consolidate/leases.postgres.ts'
import { holdVault } from '#shared/vault/base/vaults.postgres.ts'
import { screened } from '#shared/privacy/redaction-policy.ts'
import { applyCommit } from '#shared/vault/consolidate/apply.ts'
import {
  consolidation,
  tierAbove,
  type CreatedReflection,
  type StandingLease,
  type TargetTier,
} from '#shared/domain/lease.ts'
import { settledLease } from '#shared/vault/consolidate/finished.ts'
import { tokensOf } from '#shared/core/tokens.ts'
import type { CommitJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Memories } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

type Entry = { text: string; importance: number }

export type Commit = {
  /** The UUIDv7 this commit is billed under. */
  operation: string
  batch: string
  entries: readonly Entry[]
}

export type Committed = {
  tier: TargetTier
  /** In the order of the entries. */
  created: CreatedReflection[]
  /** How many memories are consolidated by it: those of the batch that were still there. */
  sources: number
  alreadyCommitted: boolean
}

type Committing = Stores & { memories: Memories; embedders: Embedders; queue: Queue; log: Log }

/** Longest a commit waits for the same one under way elsewhere; past its fence it is committed anyway. */
const sameCommitMs = 10_000

/**
 * Turns a lent batch into reflections, exactly once.
 *
 * The entries are embedded first: when that fails the batch stays lent and the commit may be tried again.
 * Then the fence: lease, bill and job in one transaction. From there on the batch is committed, whatever
 * dies. The reflections are stored right away so that the next search finds them; what is left undone
 * the job does.
 *
 * @returns what was created. For a batch committed before: what was created then, and nothing is
 *   written or billed.
 * @throws Refusal `missing` when this vault never lent the batch or was cleared since; `conflict` when its
 *   15 minutes are over; `invalid` for an entry without words, or one that the policy blocks; `unpaid` when the balance is used up;
 *   `upstream` when the embedding model does not answer.
 */
export async function commitBatch(
  backend: Committing,
  caller: Caller,
  commit: Commit,
): Promise<Committed> {
  const { query } = backend.postgres
  const lease = await standingLease(query, caller.scope, commit.batch)
  if (lease.state === 'leased') {
    requireBalance(caller)
    requireWords(commit.entries)
    const entries = screenedEntries(caller, commit.entries)
    const job = await jobOf(backend, caller, lease, entries)
    if (await fence(backend, caller, { job, operation: commit.operation })) {
      const sources = await applyNow(backend, job, lease)
      if (sources === null) throw refusalOf(undefined)
      return committedOf(lease, { created: createdOf(job), sources, alreadyCommitted: false })
    }
  }
  const settled = await settledLease(query, caller.scope, commit.batch, sameCommitMs)
  if (!settled || settled.state === 'leased') throw refusalOf(settled)
  const { created, consolidated: sources } = settled
  return committedOf(lease, { created, sources, alreadyCommitted: true })
}

/** A lease that can still be committed, or has been. */
async function standingLease(
  query: Committing['postgres']['query'],
  scope: Caller['scope'],
  batch: string,
): Promise<StandingLease> {
  const lease = isUuid(batch) ? await findLease(query, scope, batch) : undefined
  if (!lease || (lease.state === 'leased' && lease.expired)) throw refusalOf(lease)
  return lease
}

const refusalOf = (lease: StandingLease | undefined): Refusal =>
  lease
    ? new Refusal(
        'conflict',
        'The lease of this batch has run out',
        'Its memories are free again: check out anew and commit that batch',
      )
    : new Refusal('missing', 'No such batch', 'batch_id is the one a checkout answered')

function requireWords(entries: readonly Entry[]): void {
  const index = entries.findIndex(({ text }) => text.trim() === '')
  if (index >= 0) throw new Refusal('invalid', `entries[${index}].text holds no words`)
}

const screenedEntries = ({ row }: Caller, entries: readonly Entry[]): Entry[] =>
  entries.map(({ text, importance }, index) => ({
    text: screened(row.redaction, text, `entries[${index}].text`),
    importance,
  }))

/** The reflections as they will be stored: ids from batch and index, vectors made now. */
async function jobOf(
  { embedders }: Committing,
  { scope, row }: Caller,
  { batch, tier, model, covers }: StandingLease,
  entries: readonly Entry[],
): Promise<CommitJob> {
  const embedder = await embedders.get(model)
  const vectors = await embedder.embedTexts(entries.map(({ text }) => text))
  const { retentionDays: days } = row
  return {
    batch,
    vault: scope.vault,
    epoch: scope.epoch,
    space: embedder.space,
    tier: tierAbove(tier),
    covers,
    ...endsOf({ asked: null, days, storedAt: Date.now() }),
    ...(days !== null && { retentionDays: days }),
    reflections: entries.map(({ text, importance }, index) => {
      const { buffer, byteOffset, byteLength } = vectors[index]!
      return {
        id: memoryIdOf(batch, index),
        text,
        tokens: tokensOf(text),
        importance,
        vector: Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
      }
    }),
  }
}

/** @returns false, with nothing written or billed, when another commit or the clock was quicker. */
function fence(
  { postgres, queue }: Committing,
  { scope, account, keyHash }: Caller,
  { job, operation }: { job: CommitJob; operation: string },
): Promise<boolean> {
  return postgres.transaction(async tx => {
    await holdVault(tx, scope.vault, consolidation)
    if (!(await fenceLease(tx, scope, job.batch, createdOf(job)))) return false
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

/** @returns how many sources are marked, or will be; null when the vault was cleared meanwhile. */
async function applyNow(
  backend: Committing,
  job: CommitJob,
  lease: StandingLease,
): Promise<number | null> {
  try {
    return await applyCommit(backend, job)
  } catch (error) {
    backend.log.warn({ err: error, batch: job.batch }, 'commit.left-to-the-job')
    return lease.sourceIds.length
  }
}

const createdOf = ({ reflections }: CommitJob): CreatedReflection[] =>
  reflections.map(({ id, importance }) => ({ id, importance }))

function committedOf(
  { tier, sourceIds }: StandingLease,
  {
    created,
    sources,
    alreadyCommitted,
  }: {
    created: CreatedReflection[]
    sources: number | null
    alreadyCommitted: boolean
  },
): Committed {
  return { tier: tierAbove(tier), created, sources: sources ?? sourceIds.length, alreadyCommitted }
}
