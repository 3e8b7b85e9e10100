import type { BenchCase } from '#scripts/lab/bench/ab/cases.ts'
import type { ServiceClient } from '#scripts/lab/bench/ab/service-client.ts'
import { processNames, sum, type RunningState } from '#scripts/lab/bench/ab/state.ts'
import { median } from '#scripts/lab/bench/measure.ts'

/** Figures of one round, by what they are of. */
export type Figures = Map<string, number>

/** Makes the calls of a round and reads what they cost, until all that they left to do is done. */
export async function measureRound(
  { start, clients, calls }: BenchCase,
  state: RunningState,
  [client, ...others]: readonly ServiceClient[],
): Promise<Figures> {
  const { call, web, end } = await start(state, client!, others)
  await state.settle(web)
  const before = state.cpuTimes(web)
  const times: number[] = []
  let left = calls
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const startedAt = performance.now()
      await call()
      times.push(performance.now() - startedAt)
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: clients }, loop))
  const seconds = (performance.now() - startedAt) / 1_000
  await state.settle(web)
  const after = state.cpuTimes(web)
  const figures: Figures = new Map()
  for (const name of processNames)
    figures.set(`CPU of ${name}, ms`, (after[name] - before[name]) / calls)
  figures.set('CPU of all, ms', (sum(after) - sum(before)) / calls)
  figures.set('calls a second', calls / seconds)
  figures.set('time of a call, p50, ms', median(times))
  for (const [name, figure] of Object.entries((await end?.()) ?? {})) figures.set(name, figure)
  return figures
}

/** One line for each figure: median and least of both states, the ratio and its spread. */
export function compareRounds(rounds: readonly (readonly [Figures, Figures])[]): string[] {
  return [...rounds[0]![0].keys()].map(name => {
    const [other, own] = [0, 1].map(side => rounds.map(round => round[side]!.get(name)!))
    const ratios = rounds.map((_, round) => own![round]! / other![round]!)
    return `  ${name.padEnd(28)}${format(other!)}${format(own!)}   ${formatRatio(ratios)}`
  })
}

const shorten = (figure: number): string =>
  Math.abs(figure) >= 100 ? figure.toFixed(0) : figure.toPrecision(3)

const format = (figures: readonly number[]): string =>
  `${shorten(median(figures))} (${shorten(Math.min(...figures))})`.padStart(20)

/**
 * Returns the median of ratios and their spread: without the best and the worst where there are five or more. Says
 * `equal` where the spread covers 1.
 */
export function formatRatio(ratios: readonly number[]): string {
  const inOrder = ratios.filter(Number.isFinite).toSorted((one, other) => one - other)
  if (inOrder.length < 3) return 'too little to measure'
  const cut = inOrder.length >= 5 ? 1 : 0
  const [least, most] = [inOrder[cut]!, inOrder.at(-1 - cut)!]
  const spread = `${least.toFixed(2)} to ${most.toFixed(2)}`
  const isEqual = least <= 1 && most >= 1
  return `${median(inOrder).toFixed(2)} (${spread})${isEqual ? ' equal' : ''}`
}
