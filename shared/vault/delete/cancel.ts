import { dropFileOf } from '#shared/vault/bulk/files.postgres.ts'
import { cancelAccepted } from '#shared/operations/operation-rows.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** The operation had begun when its jobs were to be taken back. */
class Begun extends Error {}

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
      if (!(await cancelAccepted(tx.query, account, id))) return false
      if (!(await queue.takeBack(tx, id))) throw new Begun()
      await dropFileOf(tx.query, id)
      return true
    })
  } catch (error) {
    if (error instanceof Begun) return false
    throw error
  }
}
