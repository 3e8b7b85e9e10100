export const median = (figures: readonly number[]): number => quantile(figures, 0.5)

export function quantile(figures: readonly number[], share: number): number {
  const inOrder = figures.toSorted((one, other) => one - other)
  return inOrder[Math.min(inOrder.length - 1, Math.floor(inOrder.length * share))] ?? Number.NaN
}

/** Milliseconds of each of `times` sequential runs, after `times / 10` runs to warm up. */
export async function timeRuns(times: number, work: () => Promise<unknown>): Promise<number[]> {
  for (let warm = 0; warm < times / 10; warm++) await work()
  const figures: number[] = []
  for (let run = 0; run < times; run++) {
    const startedAt = performance.now()
    await work()
    figures.push(performance.now() - startedAt)
  }
  return figures
}

/** Runs per second of `concurrency` parallel loops during `seconds`, after half a second to warm up. */
export async function measureRate(
  concurrency: number,
  seconds: number,
  work: () => Promise<unknown>,
): Promise<number> {
  const loop = async (until: number): Promise<number> => {
    let runs = 0
    while (performance.now() < until) {
      await work()
      runs++
    }
    return runs
  }
  const runLoops = async (ms: number): Promise<number> => {
    const until = performance.now() + ms
    const runs = await Promise.all(Array.from({ length: concurrency }, () => loop(until)))
    return runs.reduce((sum, count) => sum + count, 0)
  }
  await runLoops(500)
  const startedAt = performance.now()
  const runs = await runLoops(seconds * 1_000)
  return runs / ((performance.now() - startedAt) / 1_000)
}

/** Prints a line with the figure and whether it reaches its bar; one that does not goes to the parent process as well. */
export function report(
  what: string,
  figure: number,
  { unit = '', bar }: { unit?: string; bar?: { least?: number; most?: number } } = {},
): void {
  const value = Math.abs(figure) >= 100 ? figure.toFixed(0) : figure.toPrecision(3)
  const isReached = bar && figure >= (bar.least ?? -Infinity) && figure <= (bar.most ?? Infinity)
  const verdict = bar
    ? `  bar ${bar.least === undefined ? `at most ${bar.most}` : `at least ${bar.least}`}: ${isReached ? 'reached' : 'MISSED'}`
    : ''
  process.stdout.write(`  ${what.padEnd(64)}${value.padStart(9)} ${unit.padEnd(7)}${verdict}\n`)
  if (bar && !isReached) process.send?.({ missed: `${what}: ${value} ${unit}${verdict}` })
}
