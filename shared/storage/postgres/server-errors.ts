import { setTimeout as delay } from 'node:timers/promises'
import { Refusal } from '#shared/core/errors.ts'
import { unavailable } from '#shared/core/refusals.ts'
import { transactionRetries } from '#shared/core/metrics.ts'

/**
 * Errors that pass with time, another connection or the operator: connections that fail, certificates and passwords that are
 * refused, a read-only database (25006), deadlines of the server (25P03, 25P04, 55P03, 57014), prepared statements that
 * are another connection's (26000, 42P05), a lack of something (53), shutdowns and recovery (57P0).
 */
const unreachableCodes =
  /^(?:ECONN|EPIPE|ENOTFOUND|ENOENT|EHOSTUNREACH|ETIMEDOUT|EAI_AGAIN|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|ERR_TLS_|08|25006|25P0[34]|26000|28|3D000|42P05|53|55P03|57014|57P0)/
const unreachableMessages =
  /does not support SSL|Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|not queryable|Cannot use a pool/

/** Rethrows an error of a database that cannot serve now, as a Refusal. */
export function refuseWhenUnreachable(error: unknown): never {
  if (error instanceof Refusal) throw error
  const { message } = Object(error) as { message?: unknown }
  if (unreachableCodes.test(serverCode(error)) || unreachableMessages.test(String(message)))
    throw databaseUnavailable(error)
  throw error
}

/** @param cause for the log */
const databaseUnavailable = (cause: unknown): Refusal =>
  unavailable(
    isReadOnly(cause) ? 'The database takes no writes' : 'The database is out of reach',
    cause,
  )

/** A primary that has become a standby, or a database that its provider has closed for writes. */
export const isReadOnly = (error: unknown): boolean => serverCode(error) === '25006'

/** A statement that was not run, since another of its transaction had failed. */
export const isAborted = (error: unknown): boolean => serverCode(error) === '25P02'

/** A pooler gave this connection another one of the server, which lacks the statement or has it already. */
export const isLostStatement = (error: unknown): boolean =>
  /^(?:26000|42P05)$/.test(serverCode(error))

/** The code of an error of the server or the driver, or of the error that a Refusal has as its cause. */
function serverCode(error: unknown): string {
  const { code } = Object(error instanceof Refusal ? error.cause : error) as { code?: unknown }
  return String(code)
}

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
