/** One field of many rows, in one typed array. */
export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array

const growthFactor = 1.25
const growthMin = 16

/**
 * Returns the column itself when it has `length` elements or more, otherwise a longer copy. Appending one element at a
 * time copies each five times at most, and leaves at most a fifth of a column unused.
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

/** Returns the first `length` elements without spare capacity. */
export function trimToLength<C extends Column>(column: C, length: number): C {
  return column.length === length ? column : (column.slice(0, length) as C)
}

/** Returns the elements of some rows, in the order given. */
export function selectRows<C extends Column>(column: C, rows: Uint32Array): C {
  const selected = allocateLike(column, rows.length)
  for (let i = 0; i < rows.length; i++) selected[i] = column[rows[i]!]!
  return selected
}

function allocateLike<C extends Column>(column: C, length: number): C {
  const Kind = column.constructor as new (length: number) => C
  return new Kind(length)
}

/** Inserts values before ascending `positions` of the first `count`; there must be room for them. */
export function insertValues(
  column: Uint32Array,
  count: number,
  positions: readonly number[],
  values: readonly number[],
) {
  let end = count
  // From the end, so that every value moves once.
  for (let i = values.length - 1; i >= 0; i--) {
    const position = positions[i]!
    column.copyWithin(position + i + 1, position, end)
    column[position + i] = values[i]!
    end = position
  }
}

/** Removes the values at ascending `positions`, one or more, from the first `count`. */
export function removeValues(column: Uint32Array, count: number, positions: readonly number[]) {
  let target = positions[0]!
  for (const [i, position] of positions.entries()) {
    const next = positions[i + 1] ?? count
    column.copyWithin(target, position + 1, next)
    target += next - position - 1
  }
}

/** Returns the first of `count` positions for which `isBefore` is false. */
export function lowerBound(count: number, isBefore: (position: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}
