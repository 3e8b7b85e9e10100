import type { Steps } from '#shared/core/event-loop.ts'

/** Items of a step: some 0.2 ms. */
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
