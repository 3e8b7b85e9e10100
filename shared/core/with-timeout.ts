/**
 * Waits for `work` for `ms` milliseconds at most. Later its value or error is ignored.
 *
 * @param onTimeout returns the value in place of the work's, or throws
 */
export async function withTimeout<Result, LateResult>(
  work: Promise<Result>,
  ms: number,
  onTimeout: () => LateResult,
): Promise<Result | LateResult> {
  const timeout = Promise.withResolvers<void>()
  // One turn later, so that after a blocked event loop an answer that has arrived is read first.
  const timer = setTimeout(() => setImmediate(timeout.resolve), ms)
  try {
    return await Promise.race([work, timeout.promise.then(onTimeout)])
  } finally {
    clearTimeout(timer)
  }
}
