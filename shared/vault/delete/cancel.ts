import { takeBackBill } from '#shared/billing/bill.postgres.ts'
import {
  dropLongOperation,
  unsettledSteps,
  type UnsettledStep,
} from '#shared/operations/operation-steps.postgres.ts'
import { findOperationAccount } from '#shared/operations/operation-rows.postgres.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { Stores } from '#shared/storage/stores.ts'
import {
  cancelClearedOperations,
  findOperationStatus,
} from '#shared/vault/base/erasures.postgres.ts'
import { lockVaultsOf } from '#shared/operations/vault-locks.postgres.ts'
import { deleteJobs } from '#shared/storage/queue/queue-admin.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { changeVault, changesBySession } from '#shared/vault/base/vaults.postgres.ts'
import { findStoredStates } from '#shared/vault/bulk/memories.mongo.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import type { PlannedMemory } from '#shared/domain/file-types.ts'
import { cancelAcceptedOperation } from '#shared/operations/operations.postgres.ts'

/** A worker has taken a job of the operation. */
class AlreadyBegunError extends Error {}

/**
 * Cancels an operation that has not begun: removes its jobs with their payloads and undoes its bill. Nothing
 * changes once a worker has taken one of its jobs, which may have written memories.
 *
 * @returns whether it was cancelled
 */
export async function cancelOperation(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  account: string,
  id: string,
): Promise<boolean> {
  try {
    return await postgres.transaction(async tx => {
      if (!(await cancelAcceptedOperation(tx, queue, account, id))) return false
      if (!(await queue.cancelJobs(tx, id))) throw new AlreadyBegunError()
      await takeBackBill(tx, id)
      await dropLongOperation(tx.query, id)
      return true
    })
  } catch (error) {
    if (error instanceof AlreadyBegunError) return false
    throw error
  }
}

/**
 * Lets an operator cancel work that waits or has failed: deletes its jobs and the memories that a failed try has
 * stored, and cancels the operation, whose bill is undone when it had not begun.
 *
 * @param id of a job, or of an operation: then of all its jobs
 * @returns how many jobs were removed; none while one of them runs
 * @throws Refusal `conflict` for jobs that finish what was acknowledged; `unavailable`.
 */
export async function cancelAsOperator(
  { postgres, mongo }: Stores,
  id: string,
): Promise<{ removed: number; active: number }> {
  return postgres.transaction(async tx => {
    await lockVaultsOf(tx, [id])
    const { removed, active, uncancellable, operations, memories } = await deleteJobs(tx.query, id)
    if (uncancellable > 0) throw refusal('conflict', 'jobKeepsPromise')
    await lockVaultsOf(tx, operations)
    for (const operation of operations) {
      const account = await findOperationAccount(tx.query, operation)
      if (account === undefined) continue
      const ingested = memories.filter(job => job.operation === operation)
      await discardUnfinished({ mongo }, tx, operation, ingested)
      // Without a sender of jobs here, the sweep sends those of the webhooks.
      if (await cancelAcceptedOperation(tx, null, account, operation))
        await takeBackBill(tx, operation)
      else await cancelClearedOperations(tx, null, [operation])
      await dropLongOperation(tx.query, operation)
    }
    return { removed, active }
  })
}

const endedStates = new Set(['done', 'cancelled'])

/**
 * Deletes what an operation that has not ended has stored and not finalized. What a file or a copy has stored
 * stays if its vault sent another one since, whose answer may say that the memories are present. Call it before
 * the operation is cancelled, in the transaction that removes its jobs.
 *
 * @param ingested what its jobs carried
 */
async function discardUnfinished(
  { mongo }: { mongo: Mongo },
  tx: Transaction,
  operation: string,
  ingested: readonly { vault: string; ids: readonly string[] }[],
): Promise<void> {
  const status = await findOperationStatus(tx.query, operation)
  if (!status || endedStates.has(status.state)) return
  const unsettled = await unsettledSteps(tx.query, operation)
  const promised = unsettled.map(step => ({ vault: step.vault, ids: idsOf(operation, step) }))
  for (const { vault, ids } of [...ingested, ...promised]) {
    const states = await findStoredStates(mongo, { vault, epoch: 0 }, ids)
    // Another operation may have stored or replaced the memory of an id.
    const ownMemories = [...states]
      .filter(([, state]) => state.operation === operation)
      .map(([id, { session }]) => ({ id, session: session || null }))
    if (ownMemories.length === 0) continue
    const ownIds = ownMemories.map(({ id }) => id)
    await new MemoryStore(mongo).discard({ vault }, ownIds)
    const changes = changesBySession(ownMemories, removed => ({ removed }))
    await changeVault(tx, vault, changes)
  }
}

function idsOf(operation: string, { input, plan }: UnsettledStep): string[] {
  if (input) {
    const { first, ids } = input as { first: number; ids: string[] }
    return ids.map((id, i) => copyIdOf(operation, first + i, id))
  }
  return ((plan ?? []) as PlannedMemory[]).filter(({ as }) => as === 'new').map(({ id }) => id)
}
