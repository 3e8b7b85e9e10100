/** CPU of this process for a call, in milliseconds: other processes of a busy machine do not count. */
export function cpuMs(work: () => unknown): number {
  const begun = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1_000
}

/** Twice the length may cost this much more; it is 2 for linear work and 4 for quadratic. */
const ratioMax = 3

/** Below this a cost is not told from noise. */
const measurableMs = 8

/** A text this long that costs less is not measured further: 120 ns a character, where linear work takes 20. */
const screening = { length: 8 * 1024, ms: 1 }

/** Texts with which work that doubles with each character can still be ended. */
const shortLengths = [16, 20, 24]

const longestLength = 128 * 1024

/** How many times what the shortest text costs for its share of the length; quadratic work soon takes more. */
const dearerMax = 4

/**
 * A machine may get slower while one text is measured: only what is found so often is a fault.
 *
 * The chance that linear work is called a fault, in a run that judges n texts: let p be the chance that a measurement
 * of linear work is half as much again as it should be. A cost is the least of three measurements, so it is that
 * wrong with p³. A judgement finds a fault only behind a wrong cost of one of six lengths: 6p³ at most. All five do
 * with (6p³)⁵. On two cores with 21 processes ready to run p was 0.002 (1,500 measurements); for p = 0.1 and
 * n = 100,000 the chance of a run is below 100,000 · 0.006⁵ = 8 · 10⁻⁷.
 */
const judgements = 5

/**
 * Judges how the cost of work on a text grows with its length, by CPU and by ratios of doublings, never by the
 * clock of a busy machine; several times before it finds a fault.
 *
 * @param textOf a text of about a length
 * @returns what is wrong, or undefined
 */
export function judgeGrowth(
  textOf: (length: number) => string,
  work: (text: string) => unknown,
): string | undefined {
  const cost = (length: number, runs: number): number => {
    const text = textOf(length)
    return Math.min(...Array.from({ length: runs }, () => cpuMs(() => work(text))))
  }
  for (const length of shortLengths) {
    if (cost(length, 1) > screening.ms && cost(length, 3) > screening.ms)
      return `${length} are dear`
  }
  const { length, ms } = screening
  let fault: string | undefined
  for (let times = 0; times < judgements; times++) {
    if (cost(length, 1) < ms || cost(length, 3) < ms) return undefined
    fault = judgeDoublings(length, cost)
    if (fault === undefined) return undefined
  }
  return fault
}

function judgeDoublings(
  from: number,
  cost: (length: number, runs: number) => number,
): string | undefined {
  const costs: string[] = []
  const first = cost(from, 3)
  let previous = first
  let steep = 0
  for (let length = from * 2; length <= longestLength; length *= 2) {
    const ms = cost(length, 3)
    costs.push(`${length}: ${ms.toFixed(1)} ms`)
    steep = previous > measurableMs && ms > previous * ratioMax ? steep + 1 : 0
    const isDear = ms > measurableMs && ms > dearerMax * first * (length / from)
    if (steep === 2 || isDear) return costs.join(', ')
    previous = ms
  }
  return undefined
}
