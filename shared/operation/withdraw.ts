import type { Postgres } from '#shared/postgres/connect.ts'
import { dropFileOf } from '#shared/postgres/bulk-files.ts'
import { cancelVoid } from '#shared/postgres/erasures.ts'
import { ownerOf } from '#shared/postgres/operation-owner.ts'
import { cancelAccepted } from '#shared/postgres/operation-rows.ts'
import { withdrawJobs } from '#shared/queue/board.ts'

/**
 * An operator's way to end work for good that waits or has failed: its jobs go with what they carry, and
 * its operation is cancelled, unbilled where it had not begun. Work that is done already stays done.
 *
 * @param id of a job, or of an operation: then all of its jobs
 * @returns how many jobs are gone; none while one of them is at work.
 */
export async function withdrawWork(
  postgres: Postgres,
  id: string,
): Promise<{ removed: number; active: number }> {
  return postgres.transaction(async tx => {
    const { removed, active, operations } = await withdrawJobs(tx.query, id)
    for (const operation of operations) {
      const account = await ownerOf(tx.query, operation)
      if (account === undefined) continue
      if (!(await cancelAccepted(tx.query, account, operation))) await cancelVoid(tx, [operation])
      await dropFileOf(tx.query, operation)
    }
    return { removed, active }
  })
}
