const lastByKey = new Map<string, Promise<unknown>>()

/**
 * Runs the works of one key one after the other in this process. Work that waits for a database lock holds a
 * connection: without the mutex, ten requests of one vault take the whole pool.
 */
export async function withKeyedMutex<Result>(
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const previous = lastByKey.get(key) ?? Promise.resolve()
  const current = previous.then(work, work)
  lastByKey.set(key, current)
  try {
    return await current
  } finally {
    if (lastByKey.get(key) === current) lastByKey.delete(key)
  }
}
