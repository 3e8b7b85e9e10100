/** A machine may stall between two looks, and a collector may work: the least of some tries is the service's own. */
export async function leastHold(
  tries: number,
  isShort: (hold: number) => boolean,
  work: () => Promise<number>,
): Promise<number> {
  let least = Infinity
  for (let run = 0; run < tries && !isShort(least); run++) least = Math.min(least, await work())
  return least
}

/**
 * Measures how long the event loop of this process is held at most: the CPU of the main thread between two of
 * its turns, which a busy machine does not lengthen as it does waiting times.
 *
 * @returns a function that ends it and returns the longest hold, in milliseconds
 */
export function watchEventLoop(): () => number {
  const holds: number[] = [0]
  const state = { stopped: false, before: process.threadCpuUsage() }
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(state.before)
    holds.push((user + system) / 1_000)
    state.before = process.threadCpuUsage()
    if (!state.stopped) setImmediate(look)
  }
  setImmediate(look)
  return () => {
    state.stopped = true
    return holds.reduce((longest, hold) => Math.max(longest, hold))
  }
}
