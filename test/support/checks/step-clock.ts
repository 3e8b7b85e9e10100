import type { Test } from 'tap'

/**
 * Until the test ends every reading of `performance.now()` is 10 ms later than the one before. Work in slices, which
 * end by the clock, then ends its turn of the event loop at each step, on a machine of any speed.
 */
export function startStepClock(t: Test): void {
  let time = performance.now()
  t.teardown(replaceClock(() => (time += 10)))
}

/** Until the test ends time stands still: what runs in this thread in slices never lets the event loop turn. */
export function stopClock(t: Test): void {
  const time = performance.now()
  t.teardown(replaceClock(() => time))
}

/** @returns a function that brings the clock of the machine back */
function replaceClock(now: () => number): () => void {
  // The clock is a method of the prototype.
  performance.now = now
  return () => void Reflect.deleteProperty(performance, 'now')
}

/** Counts turns of the event loop; a few of thousands may be missed. @returns those so far, and what ends it */
export function countTurns(): { turns: () => number; stop: () => void } {
  let turns = 0
  let isOver = false
  const look = (): void => {
    if (isOver) return
    turns++
    setImmediate(look)
  }
  setImmediate(look)
  return { turns: () => turns, stop: () => void (isOver = true) }
}
