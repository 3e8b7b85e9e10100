import type { Caller } from '#shared/access/caller.ts'
import {
  tombstone,
  findTombstonedBy,
  finalizeTombstones,
  findLiveMemories,
  type TombstonedMemory,
} from '#shared/vault/base/tombstones.mongo.ts'
import {
  countReleased,
  findReleasers,
  finishReleases,
  releaseSources,
} from '#shared/vault/delete/release-sources.mongo.ts'
import {
  deleteStoredResponses,
  recordTombstoneDay,
  findOperationStatus,
} from '#shared/vault/base/erasures.postgres.ts'
import { dropLoneFiles } from '#shared/vault/bulk/documents.mongo.ts'
import { listCommittingBatches } from '#shared/vault/consolidate/leases.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import { findOpenOperations, finishOperation } from '#shared/operations/operations.postgres.ts'
import {
  lockVault,
  changesBySession,
  withoutClearedSessions,
  changeVault,
  takeVaultAdvisoryLock,
} from '#shared/vault/base/vaults.postgres.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import { withMemorySpan } from '#shared/core/trace.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { forgetQuestions } from '#shared/vault/base/trace-questions.postgres.ts'
import { addDebt, debtOf } from '#shared/vault/base/debt-of-memories.ts'
import { recordDeferredBill } from '#shared/billing/bill.postgres.ts'

type DeletionCaller = Pick<Caller, 'account' | 'keyHash'> & { scope: VaultEpoch }

/** By then the request that accepted the deletion has done it, or its process has died. */
const jobDelaySeconds = 2

/**
 * Deletes memories of any tier, of the core vault and of sessions, at most once per operation. Accepts the
 * operation and executes it at once, since the memories must be invisible when the request is answered.
 *
 * @returns false when the job is to finish it; until then the memories can be seen
 */
export const acceptAndDelete = (
  ...parameters: Parameters<typeof acceptAndTry>
): Promise<boolean> => {
  const [, { scope }, { ids }] = parameters
  return withMemorySpan('delete_memory', { vault: scope.vault, ids: () => ids }, () =>
    acceptAndTry(...parameters),
  )
}

/** Deletes any number of memories, 500 by an operation. @throws Refusal `unavailable` for what is left */
export async function deleteInParts(
  backend: Parameters<typeof acceptAndTry>[0],
  caller: DeletionCaller,
  ids: readonly string[],
): Promise<void> {
  const left: string[] = []
  for (let start = 0; start < ids.length; start += 500) {
    const part = { operation: mintId(), ids: ids.slice(start, start + 500) }
    if (!(await acceptAndDelete(backend, caller, part))) left.push(part.operation)
  }
  if (left.length > 0) throw refusal('unavailable', 'notYetRemoved', { operation: left[0]! })
}

async function acceptAndTry(
  backend: Stores & { queue: Queue; log: Log },
  caller: DeletionCaller,
  { operation, ids }: { operation: string; ids: readonly string[] },
): Promise<boolean> {
  const job = await acceptDeletion(backend, caller, { operation, ids })
  if (!job) return false
  try {
    await executeDeletion(backend, job)
    return true
  } catch (error) {
    backend.log.warn({ err: error, operation }, 'delete-ids.left-to-the-job')
    return false
  }
}

/** Accepts the deletion. @returns its job; null when the operation was accepted before. */
export function acceptDeletion(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, keyHash, scope }: DeletionCaller,
  { operation, ids }: { operation: string; ids: readonly string[] },
): Promise<DeleteIdsJob | null> {
  const { vault } = scope
  const uniqueIds = [...new Set(ids.map(id => id.toLowerCase()))]
  return postgres.transaction(async tx => {
    // By itself: the next statement sees what the last holder of this lock has written.
    const { epoch } = await lockVault(tx, vault)
    const job: DeleteIdsJob = { operation, vault, epoch, ids: uniqueIds }
    const accepted = await acceptOperation(tx, queue, {
      operation: {
        id: operation,
        account,
        vault,
        keyHash,
        kind: 'delete-ids',
        awaited: true,
        // It is executed at once: it cannot be cancelled.
        started: true,
        billing: 'at end',
      },
      queueName: 'delete-ids',
      jobs: () => [{ id: operation, data: job, afterSeconds: jobDelaySeconds }],
    })
    return accepted && job
  })
}

/**
 * Deletes the memories of an accepted operation: those of a request, or expired ones. Safe to run any number of
 * times at once: tombstones record what was deleted until the operation is settled, once. Lineage that names the
 * memories stays and shows a gap. The sources of a batch whose last reflection is deleted are unconsolidated
 * again.
 *
 * @throws Refusal `unavailable` when a store is out of reach; the next run finishes it.
 */
export async function executeDeletion(
  { postgres, mongo, queue }: Stores & { queue: Queue },
  job: DeleteIdsJob,
): Promise<void> {
  const status = await findOperationStatus(postgres.query, job.operation)
  if (status && status.state !== 'done' && status.state !== 'cancelled') {
    // Expired memories of cleared sessions are deleted, too: otherwise the vault would stay due forever.
    const visible =
      job.overAt === undefined ? await visibleIds({ postgres, mongo }, job) : [...job.ids]
    // Edits and commits write and settle under the same lock, so that the debt counts each change once.
    await postgres.transaction(async tx => {
      await takeVaultAdvisoryLock(tx, job.vault, 'contents')
      const releasers = await findReleasers(mongo, job, visible)
      await tombstone(mongo, job, visible, {
        committingBatches: await listCommittingBatches(tx.query, job),
        unsettledDeletions: await findOpenOperations(tx.query, job.vault, releasers),
      })
      await releaseSources(mongo, job)
    })
    const tombstoned = await findTombstonedBy(mongo, job, job.ids)
    const documents = tombstoned.flatMap(({ document }) => document ?? [])
    await dropLoneFiles({ postgres, mongo }, job, documents)
    const visibleIdSet = new Set(visible)
    const undeleted = (await findLiveMemories(mongo, job, visible)).filter(({ id }) =>
      visibleIdSet.has(id),
    )
    await finalizeDeletion({ postgres, mongo, queue }, job, {
      tombstoned,
      failed: undeleted.map(({ id }) => id),
    })
  }
  await finishReleases(mongo, job)
  await finalizeTombstones(mongo, job, job.ids)
}

/** Live memories of the vault and of its sessions, without those of cleared sessions. */
async function visibleIds({ postgres, mongo }: Stores, job: DeleteIdsJob): Promise<string[]> {
  const live = await findLiveMemories(mongo, job, job.ids)
  return (await withoutClearedSessions(postgres.query, job, live)).map(({ id }) => id)
}

function finalizeDeletion(
  { postgres, mongo, queue }: Stores & { queue: Queue },
  job: DeleteIdsJob,
  { tombstoned, failed }: { tombstoned: TombstonedMemory[]; failed: string[] },
): Promise<void> {
  const { operation, vault, epoch, overAt } = job
  const deleted = tombstoned.length
  const outcome: OperationOutcome =
    overAt === undefined
      ? { kind: 'delete-ids', requested: job.ids.length, deleted, failed }
      : { kind: 'expire', expired: deleted }
  const isReflection = ({ tier }: TombstonedMemory): boolean => tier > 1
  const mayRelease = tombstoned.some(isReflection)
  return postgres.transaction(async tx => {
    // A source that it has released counts in the debt or is deleted, not both: see `tombstone`.
    if (mayRelease) await takeVaultAdvisoryLock(tx, vault, 'contents')
    const released = mayRelease ? await countReleased(mongo, job) : {}
    const { epoch: current } = await lockVault(tx, vault)
    if (!(await finishOperation(tx, queue, operation, outcome))) return
    const tokens = overAt === undefined ? sum(tombstoned, row => row.tokens) : 0
    await recordDeferredBill(tx, operation, tokens)
    if (deleted === 0) return
    await forgetQuestions(
      tx.query,
      vault,
      tombstoned.flatMap(({ hash }) => hash ?? []),
    )
    await recordTombstoneDay(tx, vault)
    await deleteStoredResponses(tx, vault, { ofCopies: 'previews' })
    // After a clearing neither the debt nor any index includes these memories.
    if (current === epoch)
      await changeVault(
        tx,
        vault,
        changesBySession(tombstoned, removed => ({ removed })),
        addDebt(released, debtOf(tombstoned), -1),
        queue,
      )
  })
}

export const sum = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((total, row) => total + of(row), 0)
