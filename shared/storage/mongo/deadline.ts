import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Longest that a read of one page or one lookup waits. */
const readMs = 5_000

/**
 * Milliseconds that an operation may take: `ms`, or a higher `socketTimeoutMS` in `MONGODB_URI`, for a
 * server that is slow at all times.
 */
export const deadlineMs = ({ db }: Mongo['memories'], ms = readMs): number =>
  Math.max(ms, db.client.options.socketTimeoutMS ?? 0)

/** The signal that ends such an operation; `timeoutMS` has no effect in driver 7.8, a signal has. */
export const deadline = (memories: Mongo['memories'], ms?: number): AbortSignal =>
  AbortSignal.timeout(deadlineMs(memories, ms))
