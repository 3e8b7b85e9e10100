import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { dropFileOfOperation } from '#shared/vault/bulk/files.postgres.ts'
import { cancelClearedOperations } from '#shared/vault/base/erasures.postgres.ts'
import { findOperationAccount } from '#shared/operations/operation-account.postgres.ts'
import { cancelAcceptedOperation } from '#shared/operations/operation-rows.postgres.ts'
import { deleteJobs } from '#shared/storage/queue/queue-admin.ts'

/**
 * An operator's way to end work for good that waits or has failed: its jobs go with what they carry, and
 * its operation is cancelled, unbilled where it had not begun. Work that is done already stays done.
 *
 * @param id of a job, or of an operation: then all of its jobs
 * @returns how many jobs are gone; none while one of them is at work.
 */
export async function cancelAsOperator(
  postgres: Postgres,
  id: string,
): Promise<{ removed: number; active: number }> {
  return postgres.transaction(async tx => {
    const { removed, active, operations } = await deleteJobs(tx.query, id)
    for (const operation of operations) {
      const account = await findOperationAccount(tx.query, operation)
      if (account === undefined) continue
      if (!(await cancelAcceptedOperation(tx.query, account, operation)))
        await cancelClearedOperations(tx, [operation])
      await dropFileOfOperation(tx.query, operation)
    }
    return { removed, active }
  })
}
