import { eraseCleared } from '#shared/vault/delete/erase-cleared.ts'
import { acceptErasure } from '#shared/vault/delete/accept-erasure.ts'
import type { Caller } from '#shared/access/caller.ts'
import { countCleared } from '#shared/vault/delete/delete-cleared.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  beginErasure,
  endErasure,
  deleteStoredResponses,
  deleteSessions,
  findOperationStatus,
  notifyCleared,
} from '#shared/vault/base/erasures.postgres.ts'
import { finishOperation, reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { setVaultModel } from '#shared/vault/reembed/vault-models.postgres.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import {
  eraseSessionNames,
  eraseTextsOutsideMemories,
} from '#shared/vault/delete/erase-texts.postgres.ts'
import type { ClearJob, ClearedRange } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { Stores } from '#shared/storage/stores.ts'

export type ClearRequest = {
  /** The UUIDv7 it is accepted under. */
  operation: string
  /** The session to clear, or null for everything the key has. */
  session: string | null
  reset: boolean
  awaited: boolean
}

/**
 * Makes a vault, or one session of it, empty. When this resolves nothing of it can be seen any more, by
 * any process: the epoch, the operation and its job are one transaction. Removing it from the stores is
 * left to `finishClearing`. The same operation sent again clears nothing more.
 */
export async function acceptClearing(
  {
    postgres,
    queue,
    vaultIndexes,
  }: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  caller: Caller,
  { operation, session, reset, awaited }: ClearRequest,
): Promise<void> {
  const { account, keyHash, maskedKey, scope } = caller
  const { vault } = scope
  await postgres.transaction(async tx => {
    const erasure = { id: operation, account, vault, keyHash, kind: 'clear', awaited, session }
    // How many memories there are is counted later; until then there is no number of steps.
    const accepted = await acceptErasure(tx, { ...erasure, total: 0 })
    if (!accepted) return
    // What is invisible already cannot be taken back: the operation has begun.
    await reportProgress(tx.query, operation, { done: 0 })
    const cleared = await raiseEpochs(tx, vault, session)
    if (reset) await setVaultModel(tx.query, vault, null)
    await beginErasure(tx, cleared)
    const data: ClearJob = { ...cleared, operation, key: maskedKey, reset }
    await queue.send(tx, 'clear', [{ id: operation, data, priority: -accepted.pending }])
    await deleteStoredResponses(tx, vault, { ofCopies: 'all' })
    await notifyCleared(tx, vault)
  })
  vaultIndexes.forget(vault)
}

/** @returns what no longer exists: what came before has clearings of its own. */
async function raiseEpochs(
  tx: Transaction,
  vault: string,
  session: string | null,
): Promise<ClearedRange> {
  if (session !== null) {
    return { vault, session, ...(await raiseSessionEpoch(tx, vault, session)) }
  }
  const ended = await raiseEpoch(tx, vault)
  await deleteSessions(tx, vault)
  return { vault, session, ...ended }
}

/**
 * Removes from both stores what a clearing has made invisible, looks again whether it is gone, and
 * ends the operation. Safe to run any number of times: how many memories there were is written down
 * before the first one goes.
 *
 * @throws Refusal `unavailable` when a store is out of reach, or something is there that does not go yet:
 *   what is left is removed by the next run.
 */
export async function finishClearing(
  backend: Stores,
  job: ClearJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, mongo } = backend
  const { operation, key, session, reset } = job
  const progress = await findOperationStatus(postgres.query, operation)
  if (!progress || progress.state === 'done') return

  const total = progress.total || (await countCleared(mongo, job))
  await reportProgress(postgres.query, operation, { done: 0, total })
  await eraseCleared(backend, job, {
    signal,
    onErased: done => reportProgress(postgres.query, operation, { done: Math.min(done, total) }),
  })
  // The name of a session that is cleared alone stays: it is what keeps late work out.
  if (session === null) {
    await eraseTextsOutsideMemories(postgres.query, job)
    await eraseSessionNames(postgres.query, job)
  }
  await postgres.transaction(async tx => {
    const body = {
      key,
      session_id: session,
      deleted: total,
      reset,
      operation_id: operation,
      message: describeDeletion(total, job),
    }
    await finishOperation(tx.query, operation, { status: 200, body })
    await endErasure(tx, job)
  })
}

/** After the last try: the operation has failed, and the sweeps go on removing. */
export const abandonClearing = (
  { postgres }: { postgres: Postgres },
  job: ClearJob,
): Promise<void> =>
  postgres.transaction(async tx => {
    await failOperations(tx.query, [job.operation])
    await endErasure(tx, job)
  })

function describeDeletion(deleted: number, { session, reset }: ClearJob): string {
  const memories = deleted === 1 ? '1 memory' : `${deleted} memories`
  if (session !== null) return `Deleted ${memories} of this session`
  return reset
    ? `Deleted ${memories}; the vault is as new, for any embedding model`
    : `Deleted ${memories}`
}
