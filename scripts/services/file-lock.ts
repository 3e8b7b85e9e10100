import { DatabaseSync } from 'node:sqlite'

/** Kept here so that a lock lasts as long as its process, whoever forgets the release. */
const heldLocks = new Set<DatabaseSync>()

const SQLITE_BUSY = 5

/**
 * Takes a file for this process alone. The kernel gives it back when the
 * process ends, however it ends, so there is no stale lock to judge; a file of
 * process ids cannot promise that, since ids are used again. The file stays empty.
 *
 * @param waitMs how long to wait for another holder. The thread waits with it.
 * @returns what lets go again, or undefined when someone else still holds the file.
 */
export function acquireLock(path: string, waitMs: number): (() => void) | undefined {
  const file = new DatabaseSync(path, { timeout: waitMs })
  try {
    // Without a journal of its own a killed holder leaves nothing behind.
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
