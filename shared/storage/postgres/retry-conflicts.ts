import { setTimeout as delay } from 'node:timers/promises'
import { transactionRetries } from '#shared/core/metrics.ts'
import { databaseUnavailable } from '#shared/storage/postgres/server-errors.ts'

/** Serialization failure, deadlock: Postgres has rolled everything back and asks for another try. */
const conflictCodes = new Set<unknown>(['40001', '40P01'])

const triesMax = 5
/** Before the second try; twice as long before each further one, with jitter of half of it. */
const firstDelayMs = 10

/**
 * Runs `work` again when Postgres ended it in favor of another transaction, at most 5 times in all.
 *
 * @throws Refusal `unavailable` when each of them was ended so.
 */
export async function retryConflicts<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      const { code } = error as { code?: unknown }
      if (!conflictCodes.has(code)) throw error
      if (tried === triesMax) throw databaseUnavailable(error)
      transactionRetries.inc({ code: String(code) })
      await delay(firstDelayMs * 2 ** (tried - 1) * (0.5 + Math.random()))
    }
  }
}
