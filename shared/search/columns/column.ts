/** One field of many rows, side by side. */
export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array

const growth = 1.25
const spare = 16

/**
 * The column itself when it holds `length` elements, otherwise a longer copy:
 * filling one element after another copies each of them five times at most, and
 * never more than a fifth of a column is unused.
 */
export function grown<C extends Column>(column: C, length: number): C {
  if (length <= column.length) return column
  const longer = sibling(column, Math.max(length, Math.ceil(column.length * growth) + spare))
  longer.set(column)
  return longer
}

/** The first `length` elements without room to grow. */
export function trimmed<C extends Column>(column: C, length: number): C {
  return column.length === length ? column : (column.slice(0, length) as C)
}

/** The elements of some rows, in the order given. */
export function picked<C extends Column>(column: C, rows: Uint32Array): C {
  const column2 = sibling(column, rows.length)
  for (let i = 0; i < rows.length; i++) column2[i] = column[rows[i]!]!
  return column2
}

function sibling<C extends Column>(column: C, length: number): C {
  const Kind = column.constructor as new (length: number) => C
  return new Kind(length)
}
