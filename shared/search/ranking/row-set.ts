/** A set of row numbers. */
export type RowSet = {
  readonly size: number
  add(row: number): void
  ascending(): Uint32Array
}

/** The number of the set a row was last added to, so that a new set needs no clearing. */
let lastSetOfRow = new Uint32Array(0)
let setCount = 0

/** An empty set for rows of [first, end). Valid until the next call. */
export function createRowSet(first: number, end: number): RowSet {
  if (lastSetOfRow.length < end - first || setCount === 0xffffffff) {
    lastSetOfRow = new Uint32Array(end - first)
    setCount = 0
  }
  const setNumber = ++setCount
  const rows: number[] = []
  return {
    get size() {
      return rows.length
    },
    add(row) {
      if (lastSetOfRow[row - first] === setNumber) return
      lastSetOfRow[row - first] = setNumber
      rows.push(row)
    },
    ascending: () => new Uint32Array(rows).sort(),
  }
}
