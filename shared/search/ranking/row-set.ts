/** Some rows, each once. */
export type RowSet = {
  readonly size: number
  add(row: number): void
  ascending(): Uint32Array
}

/** The number of the set that a row was put into last: a new set clears nothing. */
let owners = new Uint32Array(0)
let sets = 0

/** An empty set of rows of [first, end). Good until the next one is made. */
export function createRowSet(first: number, end: number): RowSet {
  if (owners.length < end - first || sets === 0xffffffff) {
    owners = new Uint32Array(end - first)
    sets = 0
  }
  const own = ++sets
  const rows: number[] = []
  return {
    get size() {
      return rows.length
    },
    add(row) {
      if (owners[row - first] === own) return
      owners[row - first] = own
      rows.push(row)
    },
    ascending: () => new Uint32Array(rows).sort(),
  }
}
