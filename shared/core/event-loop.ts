/** Short work is done in one tick of the event loop: a pause would only delay it. */
const firstSliceMs = 4
const sliceMs = 2

/** Works that wait for a slice; the one that has waited longest is first. */
const waiting: (() => void)[] = []
let isScheduled = false

/** Long work, with some milliseconds of it at most between two `yield`s. */
export type Steps<Result> = Generator<void, Result, void>

/** Does all steps without a pause. */
export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/**
 * Does all steps: 4 ms in the first slice, then 2 ms in each. One of all works that run at once gets
 * a slice, in rotation, so that requests that need no such work wait for one slice and not for one of each.
 *
 * @param options.firstMs in the first slice, in place of 4 ms, for work that is lost when it is paused
 * @param options.signal ends the work between two slices
 * @throws the reason of `signal`
 */
export async function runInSlices<Result>(
  steps: Steps<Result>,
  { firstMs, signal }: { firstMs?: number; signal?: AbortSignal | undefined } = {},
): Promise<Result> {
  const { pause } = createSlices(firstMs)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    const paused = pause()
    if (paused) await paused.then(() => signal?.throwIfAborted())
  }
}

/** Cuts long work into slices as `runInSlices` does: await `pause` between its parts. */
export function createSlices(firstMs = firstSliceMs): { pause(): Promise<void> | undefined } {
  let until = performance.now() + firstMs
  return {
    pause() {
      if (performance.now() < until) return undefined
      return nextSlice().then(() => void (until = performance.now() + sliceMs))
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

const nextSlice = (): Promise<void> =>
  new Promise(resolve => {
    waiting.push(resolve)
    scheduleSlice()
  })

function scheduleSlice(): void {
  if (isScheduled || waiting.length === 0) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    waiting.shift()!()
    scheduleSlice()
  })
}

/** Items of a step: some 0.2 ms of sorting. */
const runLength = 500

type Compare<Item> = (one: Item, other: Item) => number

/** As `toSorted`, in steps. */
export function* sortInSteps<Item>(
  items: readonly Item[],
  compare: Compare<Item>,
): Steps<readonly Item[]> {
  let runs: (readonly Item[])[] = []
  for (let start = 0; start < items.length; start += runLength) {
    runs.push(items.slice(start, start + runLength).sort(compare))
    yield
  }
  while (runs.length > 1) {
    const merged: (readonly Item[])[] = []
    for (let i = 0; i < runs.length; i += 2)
      merged.push(yield* mergeInSteps(runs[i]!, runs[i + 1] ?? [], compare))
    runs = merged
  }
  return runs[0] ?? []
}

/** Two sorted lists in one order; of equal items those of the first one come first. */
export function* mergeInSteps<Item>(
  first: readonly Item[],
  second: readonly Item[],
  compare: Compare<Item>,
): Steps<readonly Item[]> {
  if (first.length === 0 || second.length === 0) return first.length === 0 ? second : first
  const merged: Item[] = []
  let [at, other] = [0, 0]
  while (at < first.length || other < second.length) {
    const isSecond =
      at === first.length || (other < second.length && compare(first[at]!, second[other]!) > 0)
    merged.push(isSecond ? second[other++]! : first[at++]!)
    if (merged.length % runLength === 0) yield
  }
  return merged
}
