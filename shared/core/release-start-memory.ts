import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type CollectGarbage = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/** Share of the last interval in which the event loop was busy. */
const idleUtilization = 0.1

/**
 * Returns the memory that only the start of a process needed (sources, tables while they are built) to the system,
 * once it has been idle for 5 s: V8 keeps it for good in a process that allocates little. That is 94 MiB of a web
 * and a worker process; it holds the event loop for about 0.2 s, once, and waits until no request is being served:
 * the event loop is idle, too, while a thread cuts the 18 MB of one.
 *
 * @param lookEveryMs for how long it must have been idle
 * @returns a promise for its end, which does not keep the process alive
 */
export function releaseStartMemory(isServing: () => boolean, lookEveryMs = 5_000): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let last = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(last)
    last = performance.eventLoopUtilization()
    if (utilization > idleUtilization || isServing()) return
    clearInterval(timer)
    collectAllGarbage()
    resolve()
  }, lookEveryMs).unref()
  return promise
}

function collectAllGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as CollectGarbage
  setFlagsFromString('--no-expose-gc')
  collectGarbage({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
