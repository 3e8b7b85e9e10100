import { MongoBulkWriteError, MongoError, MongoServerError } from 'mongodb'
import { memoryStoreUnreachable } from '#shared/core/refusals.ts'

/** Rethrows an error of a server that cannot serve at the moment, or did not answer in time, as a Refusal. */
export function refuseWhenUnreachable(error: unknown): never {
  if (isUnreachable(error)) throw memoryStoreUnreachable(error)
  throw error
}

/** Errors of the driver, and of its deadlines. */
const unreachableNames =
  /^(Mongo(Network|ServerSelection|TopologyClosed|PoolCleared|NotConnected|ClientClosed|OperationTimeout|WaitQueueTimeout).*Error|TimeoutError|AbortError)$/

/** Socket errors that the driver passes on unchanged. */
const socketCodes = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)/

/** Labels of errors after which the same command may succeed; of a handshake that failed. */
const transientLabels = [
  'RetryableWriteError',
  'RetryableError',
  'TransientTransactionError',
  'SystemOverloadedError',
  'HandshakeError',
]

/**
 * Codes of an election, a shutdown, a recovering or overloaded member, a lost cursor, moved shards, and of
 * a write that was not confirmed by the majority. All of our writes may be repeated.
 */
const transientCodes = new Set([
  6, 7, 43, 63, 64, 79, 89, 91, 100, 112, 133, 134, 150, 175, 189, 202, 234, 262, 391, 462, 9001,
  10058, 10107, 11600, 11602, 13388, 13435, 13436, 14031,
])

/** Whether the command may succeed when it is sent again in a few seconds. */
export function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (unreachableNames.test(error.name)) return true
  if (typeof code === 'string' && socketCodes.test(code)) return true
  if (error instanceof MongoError && isTransient(error)) return true
  return error.cause instanceof Error && unreachableNames.test(error.cause.name)
}

function isTransient(error: MongoError): boolean {
  if (transientLabels.some(label => error.hasErrorLabel(label))) return true
  // A bulk write that no server answered: errors of a server have codes.
  if (error instanceof MongoBulkWriteError && error.code === undefined) return true
  return codesOf(error).some(code => transientCodes.has(code))
}

/** The code of an error; of a bulk write, those of its rows and of its write concern. */
function codesOf(error: MongoError): number[] {
  const rows = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : []
  return [error.code, ...rows.map(({ code }) => code), unconfirmedCode(error)].map(Number)
}

/** The code why the majority did not confirm a write, although it was executed. */
function unconfirmedCode(error: MongoError): number | undefined {
  if (!(error instanceof MongoBulkWriteError)) return undefined
  return error.result?.getWriteConcernError()?.code
}

/** Whether a write was executed but not confirmed by the majority: an election may take it back. */
export const isUnconfirmed = (error: MongoError): boolean => unconfirmedCode(error) !== undefined

/**
 * A deployment without search: CommandNotFound, CommandNotSupported, SearchNotEnabled. Before 7.1 it
 * returns an empty list of indexes; it refuses to create one.
 */
const searchMissingCodes = new Set<unknown>([59, 115, 31_082])

export const isSearchMissing = (error: unknown): boolean =>
  error instanceof MongoServerError && searchMissingCodes.has(error.code)
