import { eraseCleared } from '#shared/vault/delete/erase-cleared.ts'
import { actorOf, type Caller } from '#shared/access/caller.ts'
import { countCleared } from '#shared/vault/delete/delete-cleared.mongo.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  beginErasure,
  endErasure,
  deleteStoredResponses,
  deleteSessions,
  findOperationStatus,
  notifyCleared,
} from '#shared/vault/base/erasures.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import {
  finishOperation,
  reportProgress,
  failOperations,
} from '#shared/operations/operations.postgres.ts'
import { setVaultModel } from '#shared/vault/reembed/vault-models.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-state.postgres.ts'
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
  /** The UUIDv7 for the operation. */
  operation: string
  /** The session to clear; null: the whole vault. */
  session: string | null
  reset: boolean
  awaited: boolean
}

/**
 * Clears a vault or one session of it. When this resolves, no process can see its memories any more: the
 * epoch, the operation and its job are written in one transaction. `finishClearing` removes the memories
 * from the stores. Accepting the same operation again clears nothing more.
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
    // By itself: the next statement sees what the last holder of this lock has written.
    const { epoch } = await lockVault(tx, vault)
    const accepted = await acceptOperation(tx, queue, {
      operation: {
        id: operation,
        account,
        vault,
        keyHash,
        kind: 'clear',
        awaited,
        session,
        // The job counts the memories.
        total: 0,
        // What is cleared is invisible already: it cannot be cancelled.
        started: true,
        billing: 'never',
      },
      queueName: 'clear',
      async jobs() {
        const cleared = await raiseEpochs(tx, { vault, epoch, session })
        if (reset) await setVaultModel(tx.query, vault, null)
        await beginErasure(tx, cleared)
        return [{ id: operation, data: { ...cleared, operation, key: maskedKey, reset } }]
      },
    })
    if (!accepted) return
    // Of the account's own vaults only: a member's private vault is none of the account's business.
    if (session === null && caller.kind === 'vault') {
      const event = { account, actor: actorOf(caller), subject: maskedKey } as const
      await recordAccountEvent(tx, { ...event, action: 'vault.cleared' })
    }
    await deleteStoredResponses(tx, vault, { ofCopies: 'all' })
    await notifyCleared(tx, vault)
  })
  vaultIndexes.forget(vault)
}

/** @returns the epochs that end here; earlier ones were cleared before. */
async function raiseEpochs(
  tx: Transaction,
  { vault, epoch, session }: { vault: string; epoch: number; session: string | null },
): Promise<ClearedRange> {
  if (session !== null) {
    const ended = await raiseSessionEpoch(tx, vault, session)
    return { vault, session, ...ended, vaultEpoch: epoch }
  }
  const ended = await raiseEpoch(tx, vault)
  await deleteSessions(tx, vault)
  return { vault, session, ...ended, vaultEpoch: epoch }
}

/**
 * Removes from both stores what a clearing made invisible, checks that nothing is left, and ends the
 * operation. Safe to run any number of times: the number of memories is stored before the first is removed.
 *
 * @throws Refusal `unavailable` when a store is out of reach or documents are left: the next run removes the
 *   rest.
 */
export async function finishClearing(
  backend: Stores & { queue: Queue },
  job: ClearJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, mongo, queue } = backend
  const { operation, key, session, reset } = job
  const progress = await findOperationStatus(postgres.query, operation)
  if (!progress || progress.state === 'done') return

  const total = progress.total || (await countCleared(mongo, job))
  await reportProgress(postgres.query, operation, { done: 0, total })
  await eraseCleared(backend, job, {
    signal,
    onErased: done => reportProgress(postgres.query, operation, { done: Math.min(done, total) }),
  })
  // The name of a single cleared session stays: its epoch rejects work that arrives late.
  if (session === null) {
    await eraseTextsOutsideMemories(postgres.query, job)
    await eraseSessionNames(postgres.query, job)
  }
  await postgres.transaction(async tx => {
    const inSession = session !== null
    const outcome = { kind: 'clear', key, inSession, session, deleted: total, reset } as const
    await finishOperation(tx, queue, operation, outcome)
    await endErasure(tx, job)
  })
}

/** Called after the last try: marks the operation as failed; the sweeps remove the rest. */
export const abandonClearing = (
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  job: ClearJob,
): Promise<void> =>
  postgres.transaction(async tx => {
    await failOperations(tx, queue, [job.operation])
    await endErasure(tx, job)
  })
