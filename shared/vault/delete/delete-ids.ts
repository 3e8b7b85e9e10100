import { promiseErasure } from '#shared/vault/delete/accept.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  bury,
  buriedBy,
  levelGraves,
  livingAmong,
  type Buried,
} from '#shared/vault/base/tombstones.mongo.ts'
import { recordLateBill } from '#shared/billing/deferred-bill.postgres.ts'
import { forgetAnswers, recordBurial, standingOf } from '#shared/vault/base/erasures.postgres.ts'
import { committingBatches } from '#shared/vault/consolidate/leases.postgres.ts'
import { finishOperation, reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { lockVault, sessionEpochsOf } from '#shared/vault/base/vault-lock.postgres.ts'
import { changeVault, holdVault } from '#shared/vault/base/vaults.postgres.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** By then the request that promised it has done it itself, or has died. */
const doneAfterSeconds = 2

/**
 * Removes memories of any tier, of the core and of sessions, at most once per operation. It is promised
 * first and then done at once, since nobody may see them when it is answered; what a request that dies
 * leaves undone the job does.
 *
 * @returns whether it is done; otherwise it will be, and until then they can be seen.
 */
export async function removeMemories(
  backend: Stores & { queue: Queue; log: Log },
  caller: Caller,
  { operation, ids }: { operation: string; ids: readonly string[] },
): Promise<boolean> {
  const job = await acceptDeletion(backend, caller, { operation, ids })
  if (!job) return false
  try {
    await deleteMemories(backend, job)
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
  const different = [...new Set(ids.map(id => id.toLowerCase()))]
  const erasure = { account, vault, keyHash, kind: 'delete-ids', session: null, awaited: true }
  return postgres.transaction(async tx => {
    const accepted = await promiseErasure(tx, { ...erasure, id: operation })
    if (!accepted) return null
    // It is not taken back any more: it has begun.
    await reportProgress(tx.query, operation, { done: 0 })
    const job: DeleteIdsJob = { operation, vault, epoch: accepted.epoch, ids: different }
    const priority = -accepted.pending
    const promised = { id: operation, data: job, priority, afterSeconds: doneAfterSeconds }
    await queue.send(tx, 'delete-ids', [promised])
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
export async function deleteMemories(
  { postgres, mongo }: Stores,
  job: DeleteIdsJob,
): Promise<void> {
  const standing = await standingOf(postgres.query, job.operation)
  if (standing && standing.state !== 'done' && standing.state !== 'cancelled') {
    // What is over goes from cleared sessions, too: left there it would be due for ever.
    const visible =
      job.overAt === undefined ? await visibleIds({ postgres, mongo }, job) : [...job.ids]
    // An edit or a commit is written and settled under the same hold: the debt loses none to another.
    await postgres.transaction(async tx => {
      await holdVault(tx, job.vault, 'contents')
      await bury(mongo, job, visible, await committingBatches(tx.query, job))
    })
    const buried = await buriedBy(mongo, job, job.ids)
    const asked = new Set(visible)
    const living = (await livingAmong(mongo, job, visible)).filter(({ id }) => asked.has(id))
    await settle({ postgres }, job, { buried, failed: living.map(({ id }) => id) })
  }
  await levelGraves(mongo, job, job.ids)
}

/** Living memories of the vault and of its sessions as they are now: what was cleared is not found. */
async function visibleIds({ postgres, mongo }: Stores, job: DeleteIdsJob): Promise<string[]> {
  const living = await livingAmong(mongo, job, job.ids)
  const sessions = new Set(living.flatMap(({ session }) => session ?? []))
  const epochs = await sessionEpochsOf(postgres.query, job, [...sessions])
  return living
    .filter(({ session, sessionEpoch }) => sessionEpoch === (epochs.get(session ?? '') ?? 0))
    .map(({ id }) => id)
}

function settle(
  { postgres }: { postgres: Postgres },
  job: DeleteIdsJob,
  { buried, failed }: { buried: Buried[]; failed: string[] },
): Promise<void> {
  const { operation, vault, epoch, overAt } = job
  const deleted = buried.length
  const body = overAt === undefined ? answerOf(job, deleted, failed) : expiredBody(job, deleted)
  return postgres.transaction(async tx => {
    const { epoch: current } = await lockVault(tx, vault)
    if (!(await finishOperation(tx.query, operation, { status: 200, body }))) return
    const tokens = overAt === undefined ? sum(buried, row => row.tokens) : 0
    await recordLateBill(tx, operation, tokens)
    if (deleted === 0) return
    await recordBurial(tx, vault)
    await forgetAnswers(tx, vault, { ofCopies: 'previews' })
    // After a clearing nothing of this is in the debt, and no image holds it.
    if (current === epoch) await changeVault(tx, vault, changesOf(buried), debtChangeOf(buried))
  })
}

const answerOf = ({ ids, operation }: DeleteIdsJob, deleted: number, failed: string[]) => ({
  requested: ids.length,
  deleted,
  do_deleted: deleted,
  not_found: ids.length - deleted - failed.length,
  legacy_fallback_used: false,
  failed,
  operation_id: operation,
})

const expiredBody = ({ operation }: DeleteIdsJob, expired: number) => ({
  expired,
  operation_id: operation,
  message: expired === 1 ? '1 memory was over' : `${expired} memories were over`,
})

const changesOf = (buried: readonly Buried[]) =>
  [...Map.groupBy(buried, ({ session }) => session)].map(([session, rows]) => ({
    session,
    removed: rows.map(({ id }) => id),
  }))

/** What waited for consolidation waits no longer; sessions never did. */
function debtChangeOf(buried: readonly Buried[]): DebtChange {
  const waiting = buried.filter(({ session, consolidated }) => session === null && !consolidated)
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
