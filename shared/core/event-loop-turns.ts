import type { Steps } from '#shared/core/event-loop.ts'

/** Short work is done in one turn of the event loop: a pause would only delay it. */
const firstSliceMs = 4
/** Of work that takes longer, this much is done in each further turn. */
const sliceMs = 2

/** The works that wait for a turn; the one that has waited longest is first. */
const waiting: (() => void)[] = []
let isScheduled = false

/**
 * Does all steps, which are short: 4 ms in the first turn of the event loop, then 2 ms in each. Of all works
 * that run at once one gets a turn, in rotation, so that requests that need no such work wait for one slice
 * and not for one of each.
 */
export async function runInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  let until = performance.now() + firstSliceMs
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    if (performance.now() < until) continue
    await nextTurn()
    until = performance.now() + sliceMs
  }
}

function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    scheduleTurn()
  })
}

function scheduleTurn() {
  if (isScheduled || waiting.length === 0) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    waiting.shift()!()
    scheduleTurn()
  })
}
