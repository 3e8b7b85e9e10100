/**
 * Waits for `work` for `ms` milliseconds at most. Work that ends later is not stopped: its value or error
 * is ignored.
 *
 * @param onTimeout gives the value to return in place of the work's, or throws
 */
export async function withTimeout<Result, LateResult>(
  work: Promise<Result>,
  ms: number,
  onTimeout: () => LateResult,
): Promise<Result | LateResult> {
  const timeout = Promise.withResolvers<void>()
  // One turn later: when the event loop was blocked, an answer that has arrived is read first.
  const timer = setTimeout(() => setImmediate(timeout.resolve), ms)
  try {
    return await Promise.race([work, timeout.promise.then(onTimeout)])
  } finally {
    clearTimeout(timer)
  }
}
