/** One field of many rows, in one typed array. */
export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array

const growthFactor = 1.25
const growthMin = 16

/**
 * Returns the column itself when it has `length` elements or more, otherwise a longer copy.
 * Appending one element at a time copies each of them five times at most, and at most a fifth of a
 * column is unused.
 */
export function ensureCapacity<C extends Column>(column: C, length: number): C {
  if (length <= column.length) return column
  const longer = allocateLike(
    column,
    Math.max(length, Math.ceil(column.length * growthFactor) + growthMin),
  )
  longer.set(column)
  return longer
}

/** The first `length` elements without spare capacity. */
export function trimToLength<C extends Column>(column: C, length: number): C {
  return column.length === length ? column : (column.slice(0, length) as C)
}

/** The elements of some rows, in the order given. */
export function selectRows<C extends Column>(column: C, rows: Uint32Array): C {
  const selected = allocateLike(column, rows.length)
  for (let i = 0; i < rows.length; i++) selected[i] = column[rows[i]!]!
  return selected
}

function allocateLike<C extends Column>(column: C, length: number): C {
  const Kind = column.constructor as new (length: number) => C
  return new Kind(length)
}
