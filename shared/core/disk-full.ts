/** `disk_full` of PostgreSQL, `OutOfDiskSpace` of MongoDB, and the system's own. */
const diskFullCodes = new Set<unknown>(['53100', 14_031, 'ENOSPC'])

const diskFullWords = /No space left on device|OutOfDiskSpace|ENOSPC/i

/** Causes below an error that are looked at. */
const depthMax = 5

/** Whether an error, or what caused it, is a full disk: here, of PostgreSQL or of MongoDB. */
export function isDiskFull(error: unknown): boolean {
  let current: unknown = error
  for (let depth = 0; current instanceof Error && depth < depthMax; depth++) {
    const { code, message, cause } = current as Error & { code?: unknown }
    if (diskFullCodes.has(code) || diskFullWords.test(message)) return true
    current = cause
  }
  return false
}

/** What an operator does about it. */
export const diskFullHint =
  'No space is left on the disk of a database: free some, then start again. What was stored stays'
