const minutes = 15

/** Counts of the last 15 minutes, to the minute. */
export class RecentCounts {
  readonly #size: number
  /** Each of the last minutes: its number since 1970, and its counts. */
  readonly #slots: { minute: number; counts: number[] }[]

  /** @param size how many things are counted */
  constructor(size: number) {
    this.#size = size
    this.#slots = Array.from({ length: minutes }, () => ({ minute: -1, counts: [] }))
  }

  add(index: number, at = Date.now()): void {
    const minute = Math.floor(at / 60_000)
    const slot = this.#slots[minute % minutes]!
    if (slot.minute !== minute) {
      slot.minute = minute
      slot.counts = Array.from({ length: this.#size }, () => 0)
    }
    slot.counts[index]!++
  }

  /** The counts of all minutes that are recent now. */
  sums(at = Date.now()): number[] {
    const oldest = Math.floor(at / 60_000) - minutes
    const recent = this.#slots.filter(({ minute }) => minute > oldest)
    return Array.from({ length: this.#size }, (_, index) =>
      recent.reduce((sum, { counts }) => sum + counts[index]!, 0),
    )
  }
}
