/** The last in each queue. */
const lastByKey = new Map<string, Promise<unknown>>()

/**
 * Runs work of one key one after the other in this process. Work that will wait for a lock of the
 * database holds a connection meanwhile: without turns, ten requests of one vault take them all.
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
