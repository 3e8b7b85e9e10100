/** The last in each queue. */
const queues = new Map<string, Promise<unknown>>()

/**
 * Runs work of one key one after the other in this process. Work that will wait for a lock of the
 * database holds a connection meanwhile: without turns, ten requests of one vault take them all.
 */
export async function inTurn<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
  const before = queues.get(key) ?? Promise.resolve()
  const mine = before.then(work, work)
  queues.set(key, mine)
  try {
    return await mine
  } finally {
    if (queues.get(key) === mine) queues.delete(key)
  }
}
