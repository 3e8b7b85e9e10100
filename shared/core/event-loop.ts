/** Short work is done in one turn of the event loop: a pause would only delay it. */
const firstSliceMs = 4
/** Of work that takes longer, this much is done in each further turn. */
const sliceMs = 2

/** The works that wait for a turn; the one that has waited longest is first. */
const waiting: (() => void)[] = []
let isScheduled = false

/** Long work, with some milliseconds of it at most between two `yield`s. */
export type Steps<Result> = Generator<void, Result, void>

/** Does all steps without a pause: for small inputs. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Does all steps: 4 ms in the first turn of the event loop, then 2 ms in each. Of all works that run at once one gets
 * a turn, in rotation, so that requests that need no such work wait for one slice and not for one of each.
 */
export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const { pause } = createSlices()
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    const turn = pause()
    if (turn) await turn
  }
}

/** Cuts long work into slices, as `runInSlices`: await `pause` between its parts. */
export function createSlices(): { pause(): Promise<void> | undefined } {
  let until = performance.now() + firstSliceMs
  return {
    pause() {
      if (performance.now() < until) return undefined
      return nextTurn().then(() => void (until = performance.now() + sliceMs))
    },
  }
}

/** As `Array.map`, one item after the other; between them the event loop runs. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  work: (item: Item, index: number) => Result | Promise<Result>,
): Promise<Result[]> {
  const { pause } = createSlices()
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    results.push(await work(item, index))
    await pause()
  }
  return results
}

function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    scheduleTurn()
  })
}

function scheduleTurn(): void {
  if (isScheduled || waiting.length === 0) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    waiting.shift()!()
    scheduleTurn()
  })
}
