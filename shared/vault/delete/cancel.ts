import { dropLongOperation } from '#shared/operations/operation-steps.postgres.ts'
import { takeBackBill } from '#shared/billing/bill.postgres.ts'
import { cancelAcceptedOperation } from '#shared/operations/operations.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** A worker has taken a job of the operation. */
class AlreadyBegunError extends Error {}

/**
 * Cancels an operation that has not begun: removes its jobs with their payloads and undoes its bill. When a
 * worker has taken one of its jobs, nothing changes, also while that waits for its next try: the try before may
 * have written memories.
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
