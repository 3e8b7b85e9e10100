import { takeBackBill } from '#shared/billing/bill.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { discardUnfinished } from '#shared/vault/delete/discard-unfinished.ts'
import { dropLongOperation } from '#shared/operations/operation-steps.postgres.ts'
import { cancelClearedOperations } from '#shared/vault/base/erasures.postgres.ts'
import { findOperationAccount } from '#shared/operations/operation-rows.postgres.ts'
import { cancelAcceptedOperation } from '#shared/operations/operations.postgres.ts'
import { lockVaultsOf } from '#shared/operations/vault-locks.postgres.ts'
import { deleteJobs } from '#shared/storage/queue/queue-admin.ts'

/**
 * Lets an operator cancel work that waits or has failed: deletes its jobs with their payloads, and the memories
 * that a failed try has stored, and cancels the operation, whose bill is undone when it had not begun. Work
 * that is done is not undone.
 *
 * @param id of a job, or of an operation: then of all its jobs
 * @returns how many jobs were removed; none while one of them runs
 * @throws Refusal `conflict` for jobs that finish what was acknowledged; `unavailable` when the memory store is
 *   out of reach.
 */
export async function cancelAsOperator(
  { postgres, mongo }: Stores,
  id: string,
): Promise<{ removed: number; active: number }> {
  return postgres.transaction(async tx => {
    await lockVaultsOf(tx, [id])
    const { removed, active, uncancellable, operations, memories } = await deleteJobs(tx.query, id)
    if (uncancellable > 0) {
      throw new Refusal(
        'conflict',
        'This job finishes what was acknowledged and cannot be cancelled',
        'Let it run again',
      )
    }
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
