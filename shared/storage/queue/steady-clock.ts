import { systemClock } from 'pg-boss'

/**
 * Time for pg-boss that never goes back. Its timers wait until a time of the wall clock: when that is set back by
 * an hour, dead workers would be looked for an hour later. Jumps ahead are followed, as after a suspension of the
 * machine, in which the steady clock of the process stands still.
 */
export function createSteadyClock(): typeof systemClock {
  let startedAt = Number.NEGATIVE_INFINITY
  const now = (): number => {
    const steady = performance.now()
    startedAt = Math.max(startedAt, Date.now() - steady)
    return startedAt + steady
  }
  return { ...systemClock, now }
}
