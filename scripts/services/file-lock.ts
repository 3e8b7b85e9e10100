import { DatabaseSync } from 'node:sqlite'

/** Prevents garbage collection: a lock that is never released lasts until the process ends. */
const heldLocks = new Set<DatabaseSync>()

const SQLITE_BUSY = 5

/**
 * Locks a file for this process. The kernel releases the lock when the process
 * ends, also by a crash, so there are no stale locks; a file with a process id
 * has them, since ids are reused. The file stays empty.
 *
 * @param waitMs how long to wait for another process; blocks the thread.
 * @returns a function that releases the lock; undefined when another process still has it.
 */
export function acquireLock(path: string, waitMs: number): (() => void) | undefined {
  const file = new DatabaseSync(path, { timeout: waitMs })
  try {
    // With a journal in memory a killed process leaves no journal file behind.
    file.exec('pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    file.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined
    throw error
  }

  heldLocks.add(file)
  return () => {
    if (heldLocks.delete(file)) file.close()
  }
}
