import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'

/** A number above 0 for some of the records. Takes no memory while no record has one. */
export class SparseColumn {
  /** 0 for none; may be shorter than there are records. */
  #values: Float64Array

  constructor(values: Float64Array = new Float64Array(0)) {
    this.#values = values
  }

  get bytes(): number {
    return this.#values.byteLength
  }

  set(record: number, value: number | undefined) {
    if (value === undefined) return
    this.#values = ensureCapacity(this.#values, record + 1)
    this.#values[record] = value
  }

  get(record: number): number | undefined {
    return this.#values[record] || undefined
  }

  /** These records only, numbered from 0 in the order given. */
  pick(records: Uint32Array): SparseColumn {
    return new SparseColumn(this.#values.length > 0 ? selectRows(this.#values, records) : undefined)
  }

  /** Frees the capacity beyond `count` records. */
  trim(count: number) {
    this.#values = trimToLength(this.#values, Math.min(count, this.#values.length))
  }
}
