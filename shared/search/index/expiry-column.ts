import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'

/** When records are over; where none ever is they take no room. */
export type ExpiryColumn = {
  readonly bytes: number
  set(record: number, expiresAt: number | undefined): void
  get(record: number): number | undefined
  /** These records alone, numbered from 0 in the order given. */
  pick(records: Uint32Array): ExpiryColumn
  trim(count: number): void
}

/** A moment of 0 stands for none. */
export function createExpiryColumn(initial = new Float64Array(0)): ExpiryColumn {
  let column = initial
  return {
    get bytes() {
      return column.byteLength
    },
    set(record, expiresAt) {
      if (expiresAt === undefined) return
      column = ensureCapacity(column, record + 1)
      column[record] = expiresAt
    },
    get: record => column[record] || undefined,
    pick: records => createExpiryColumn(column.length > 0 ? selectRows(column, records) : column),
    trim(count) {
      column = trimToLength(column, Math.min(count, column.length))
    },
  }
}
