import { setImmediate as nextTurn } from 'node:timers/promises'

/** Other requests are served in between: none waits longer for long work. */
const sliceMs = 5

/**
 * Cuts long work into slices: call `pause` between its parts, and it lets the event loop run once 5 ms have
 * been worked.
 */
export function createSlices(): { pause(): Promise<void> } {
  let startedAt = performance.now()
  return {
    async pause() {
      if (performance.now() - startedAt < sliceMs) return
      await nextTurn()
      startedAt = performance.now()
    },
  }
}

/** Long work, with some milliseconds of it at most between two `yield`s. */
export type Steps<Result> = Generator<void, Result, void>

/** Does all steps without a pause: for small inputs. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Does all steps; between them the event loop runs once 5 ms have been worked. */
export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = createSlices()
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await slices.pause()
  }
}
