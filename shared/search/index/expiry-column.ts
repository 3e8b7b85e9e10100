import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'

/** When records expire, in epoch milliseconds. Takes no memory while no record expires. */
export class ExpiryColumn {
  /** 0 for never; may be shorter than there are records. */
  #times: Float64Array

  constructor(times: Float64Array = new Float64Array(0)) {
    this.#times = times
  }

  get bytes(): number {
    return this.#times.byteLength
  }

  set(record: number, expiresAt: number | undefined) {
    if (expiresAt === undefined) return
    this.#times = ensureCapacity(this.#times, record + 1)
    this.#times[record] = expiresAt
  }

  get(record: number): number | undefined {
    return this.#times[record] || undefined
  }

  /** These records only, numbered from 0 in the order given. */
  pick(records: Uint32Array): ExpiryColumn {
    return new ExpiryColumn(this.#times.length > 0 ? selectRows(this.#times, records) : undefined)
  }

  /** Frees the capacity beyond `count` records. */
  trim(count: number) {
    this.#times = trimToLength(this.#times, Math.min(count, this.#times.length))
  }
}
