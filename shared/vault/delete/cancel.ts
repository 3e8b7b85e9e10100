import { dropFileOfOperation } from '#shared/vault/bulk/files.postgres.ts'
import { cancelAcceptedOperation } from '#shared/operations/operation-rows.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** The operation had begun when its jobs were to be taken back. */
class AlreadyBegunError extends Error {}

/**
 * Takes back work that has not begun: its jobs leave the queue with what they were to store, its bill
 * is undone. All or nothing: when a worker already holds one of its jobs, nothing changes.
 *
 * @returns whether it is cancelled.
 */
export async function cancelOperation(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  account: string,
  id: string,
): Promise<boolean> {
  try {
    return await postgres.transaction(async tx => {
      if (!(await cancelAcceptedOperation(tx.query, account, id))) return false
      if (!(await queue.cancelJobs(tx, id))) throw new AlreadyBegunError()
      await dropFileOfOperation(tx.query, id)
      return true
    })
  } catch (error) {
    if (error instanceof AlreadyBegunError) return false
    throw error
  }
}
