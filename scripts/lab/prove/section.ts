import type { Cluster } from '#scripts/lab/prove/cluster.ts'
import type { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import type { Stores } from '#scripts/lab/prove/stores.ts'

/** What a section of the proof works with. */
export type SectionContext = {
  cluster: Cluster
  provider: ModelProvider
  /** The databases; null where given ones are used, which are not ours to stop. */
  stores: Stores | null
  /** A new folder of this run, deleted at its end. */
  folder: string
  /** Requests a second of the load. */
  rate: number
  /** The time the section has, in ms. */
  ms: number
  /** How much of its own it does in the proof of a release, whatever the time; null where the time decides. */
  count: number | null
  /** Numbers in 0 to 1, the same for the same seed. */
  random: () => number
  /** Prints how far a long section is. */
  report: (text: string) => void
  /** Aborted where the run ends early: a section with a limit ends there and reports what it found. */
  interrupt: AbortSignal
}

export type Figure = {
  name: string
  value: number
  unit?: string
  /** The most it may be; a figure without one is printed and not judged. */
  most?: number
}

export type SectionResult = {
  figures: Figure[]
  /** The first things that went wrong, in words. */
  faults: string[]
  /** Why nothing of it was run here. */
  notRun?: string
}

export const notRun = (reason: string): SectionResult => ({
  figures: [],
  faults: [],
  notRun: reason,
})

/** Faults that are kept of a section. */
const faultsMax = 20

/** Collects faults without growing with them. */
export class Faults {
  readonly first: string[] = []
  count = 0

  add(text: string): void {
    this.count++
    if (this.first.length < faultsMax) this.first.push(text.slice(0, 500))
  }
}

export const pickOne = <Item>(items: readonly Item[], random: () => number): Item =>
  items[Math.floor(random() * items.length)]!

/** Waits a random time between two, in ms. */
export const pauseBetween = (least: number, most: number, random: () => number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, least + random() * (most - least)))

/** A section that has not done its count after so long is broken. */
const countMs = 3 * 3_600_000
/** How often its progress is printed. */
const reportMs = 60_000

/**
 * When a section ends.
 *
 * @param done how much it has done
 * @returns a function that returns whether its count is reached or, without one, its time is over; or the run was interrupted
 * @throws Error (the returned function) where its count takes longer than three hours
 */
export function createLimit(
  { ms, count, report, interrupt }: Pick<SectionContext, 'ms' | 'count' | 'report' | 'interrupt'>,
  done: () => number,
): () => boolean {
  const startedAt = Date.now()
  let reportAt = reportMs
  return () => {
    if (interrupt.aborted) return true
    const spent = Date.now() - startedAt
    if (count === null) return spent >= ms
    if (spent >= reportAt) {
      reportAt += reportMs
      report(`${done()} of ${count} after ${Math.round(spent / 60_000)} min`)
    }
    if (spent < countMs) return done() >= count
    throw new Error(`${done()} of ${count} after three hours`)
  }
}

/** @returns a function that returns whether `ms` have passed */
export const createTimeLimit = (ms: number): (() => boolean) =>
  createLimit(
    { ms, count: null, report: () => {}, interrupt: new AbortController().signal },
    () => 0,
  )

/** Runs `work` in parallel loops until `isOver`. */
export async function runLoops(
  loops: number,
  isOver: () => boolean,
  work: (loop: number) => Promise<void>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: loops }, async (_, loop) => {
      while (!isOver()) await work(loop)
    }),
  )
}

/** Adds up the figures of rounds that have the same names in the same order. */
export const sumFigures = (rounds: readonly (readonly Figure[])[]): Figure[] =>
  (rounds[0] ?? []).map((figure, index) => ({
    ...figure,
    value: rounds.reduce((sum, figures) => sum + figures[index]!.value, 0),
  }))
