import { grown, picked, trimmed } from '#shared/search/columns/column.ts'

/** When records are over; where none ever is they take no room. */
export type Endings = {
  readonly bytes: number
  put(record: number, expiresAt: number | undefined): void
  of(record: number): number | undefined
  /** These records alone, numbered from 0 in the order given. */
  pick(records: Uint32Array): Endings
  trim(count: number): void
}

/** A moment of 0 stands for none. */
export function createEndings(held = new Float64Array(0)): Endings {
  let column = held
  return {
    get bytes() {
      return column.byteLength
    },
    put(record, expiresAt) {
      if (expiresAt === undefined) return
      column = grown(column, record + 1)
      column[record] = expiresAt
    },
    of: record => column[record] || undefined,
    pick: records => createEndings(column.length > 0 ? picked(column, records) : column),
    trim(count) {
      column = trimmed(column, Math.min(count, column.length))
    },
  }
}
