import { acceptErasure } from '#shared/vault/delete/accept-erasure.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  tombstone,
  findTombstonedBy,
  finalizeTombstones,
  findLiveMemories,
  type TombstonedMemory,
} from '#shared/vault/base/tombstones.mongo.ts'
import { recordDeferredBill } from '#shared/billing/deferred-bill.postgres.ts'
import {
  deleteStoredResponses,
  recordTombstoneDay,
  findOperationStatus,
} from '#shared/vault/base/erasures.postgres.ts'
import { listCommittingBatches } from '#shared/vault/consolidate/leases.postgres.ts'
import { finishOperation, reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { lockVault, findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import { changeVault, takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** By then the request that promised it has done it itself, or has died. */
const jobDelaySeconds = 2

/**
 * Removes memories of any tier, of the core and of sessions, at most once per operation. It is promised
 * first and then done at once, since nobody may see them when it is answered; what a request that dies
 * leaves undone the job does.
 *
 * @returns whether it is done; otherwise it will be, and until then they can be seen.
 */
export async function acceptAndDelete(
  backend: Stores & { queue: Queue; log: Log },
  caller: Caller,
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

/** Promises the removal. @returns its job; null when the operation had been promised before. */
export function acceptDeletion(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, keyHash, scope }: Caller,
  { operation, ids }: { operation: string; ids: readonly string[] },
): Promise<DeleteIdsJob | null> {
  const { vault } = scope
  const uniqueIds = [...new Set(ids.map(id => id.toLowerCase()))]
  const erasure = { account, vault, keyHash, kind: 'delete-ids', session: null, awaited: true }
  return postgres.transaction(async tx => {
    const accepted = await acceptErasure(tx, { ...erasure, id: operation })
    if (!accepted) return null
    // It is not taken back any more: it has begun.
    await reportProgress(tx.query, operation, { done: 0 })
    const job: DeleteIdsJob = { operation, vault, epoch: accepted.epoch, ids: uniqueIds }
    const priority = -accepted.pending
    const queuedJob = { id: operation, data: job, priority, afterSeconds: jobDelaySeconds }
    await queue.send(tx, 'delete-ids', [queuedJob])
    return job
  })
}

/**
 * Removes what was promised: what somebody asked to remove, or what is over. Safe to run any number of
 * times, in several processes at once: tombstones tell what this operation has buried until it is
 * settled, and it is settled once. From the settlement on no process sees them; lineage that names them
 * stays and shows as a gap.
 *
 * @throws Refusal `unavailable` when a store is out of reach; the next run finishes it.
 */
export async function executeDeletion(
  { postgres, mongo }: Stores,
  job: DeleteIdsJob,
): Promise<void> {
  const status = await findOperationStatus(postgres.query, job.operation)
  if (status && status.state !== 'done' && status.state !== 'cancelled') {
    // What is over goes from cleared sessions, too: left there it would be due for ever.
    const visible =
      job.overAt === undefined ? await visibleIds({ postgres, mongo }, job) : [...job.ids]
    // An edit or a commit is written and settled under the same hold: the debt loses none to another.
    await postgres.transaction(async tx => {
      await takeVaultAdvisoryLock(tx, job.vault, 'contents')
      await tombstone(mongo, job, visible, await listCommittingBatches(tx.query, job))
    })
    const tombstoned = await findTombstonedBy(mongo, job, job.ids)
    const visibleIdSet = new Set(visible)
    const undeleted = (await findLiveMemories(mongo, job, visible)).filter(({ id }) =>
      visibleIdSet.has(id),
    )
    await finalizeDeletion({ postgres }, job, {
      buried: tombstoned,
      failed: undeleted.map(({ id }) => id),
    })
  }
  await finalizeTombstones(mongo, job, job.ids)
}

/** Living memories of the vault and of its sessions as they are now: what was cleared is not found. */
async function visibleIds({ postgres, mongo }: Stores, job: DeleteIdsJob): Promise<string[]> {
  const live = await findLiveMemories(mongo, job, job.ids)
  const sessions = new Set(live.flatMap(({ session }) => session ?? []))
  const epochs = await findSessionEpochs(postgres.query, job, [...sessions])
  return live
    .filter(({ session, sessionEpoch }) => sessionEpoch === (epochs.get(session ?? '') ?? 0))
    .map(({ id }) => id)
}

function finalizeDeletion(
  { postgres }: { postgres: Postgres },
  job: DeleteIdsJob,
  { buried: tombstoned, failed }: { buried: TombstonedMemory[]; failed: string[] },
): Promise<void> {
  const { operation, vault, epoch, overAt } = job
  const deleted = tombstoned.length
  const body =
    overAt === undefined ? toDeletionBody(job, deleted, failed) : toExpiryBody(job, deleted)
  return postgres.transaction(async tx => {
    const { epoch: current } = await lockVault(tx, vault)
    if (!(await finishOperation(tx.query, operation, { status: 200, body }))) return
    const tokens = overAt === undefined ? sum(tombstoned, row => row.tokens) : 0
    await recordDeferredBill(tx, operation, tokens)
    if (deleted === 0) return
    await recordTombstoneDay(tx, vault)
    await deleteStoredResponses(tx, vault, { ofCopies: 'previews' })
    // After a clearing nothing of this is in the debt, and no image holds it.
    if (current === epoch)
      await changeVault(tx, vault, toSessionChanges(tombstoned), toDebtChange(tombstoned))
  })
}

const toDeletionBody = ({ ids, operation }: DeleteIdsJob, deleted: number, failed: string[]) => ({
  requested: ids.length,
  deleted,
  do_deleted: deleted,
  not_found: ids.length - deleted - failed.length,
  legacy_fallback_used: false,
  failed,
  operation_id: operation,
})

const toExpiryBody = ({ operation }: DeleteIdsJob, expired: number) => ({
  expired,
  operation_id: operation,
  message: expired === 1 ? '1 memory was over' : `${expired} memories were over`,
})

const toSessionChanges = (tombstoned: readonly TombstonedMemory[]) =>
  [...Map.groupBy(tombstoned, ({ session }) => session)].map(([session, rows]) => ({
    session,
    removed: rows.map(({ id }) => id),
  }))

/** What waited for consolidation waits no longer; sessions never did. */
function toDebtChange(tombstoned: readonly TombstonedMemory[]): DebtChange {
  const waiting = tombstoned.filter(
    ({ session, consolidated }) => session === null && !consolidated,
  )
  const raw = waiting.filter(({ tier }) => tier === 1)
  const reflections = waiting.filter(({ tier }) => tier === 2)
  return {
    rawUnits: -raw.length,
    rawTokens: -sum(raw, ({ tokens }) => tokens),
    tier2Count: -reflections.length,
    tier2Importance: -sum(reflections, ({ importance }) => importance),
    tier2Tokens: -sum(reflections, ({ tokens }) => tokens),
  }
}

const sum = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((total, row) => total + of(row), 0)
