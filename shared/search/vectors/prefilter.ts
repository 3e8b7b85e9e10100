import { createSketchKernel, type SketchKernel } from '#shared/search/vectors/prefilter-kernel.ts'
import { columnsOf, cut, sketchTableOf } from '#shared/search/vectors/prefilter-table.ts'
import { likeliest } from '#shared/search/vectors/select-candidates.ts'

/**
 * Two bits for each number of up to so many rows, in the cache where the rows themselves are not:
 * what it takes to leave out the rows that cannot be among the best.
 */
export type Sketch = {
  readonly bytes: number
  /** Rows from this one on have changed or moved. */
  outdate(from: number): void
  /** One row has changed. */
  redraw(values: Int8Array, row: number): void
  /** Draws what is new among the first `count` rows; false when there is no room for them. */
  bringUp(values: Int8Array, count: number): boolean
  /**
   * Rows of [from, to), ascending, among which the best `k` nearly always are; or null when that would
   * be so many that one may as well look at all of them. What is new must have been drawn.
   */
  likely(question: Int8Array, from: number, to: number, k: number): Uint32Array | null
}

/** Fewer numbers than these stay in the cache themselves: looking at every row is as fast. */
const numbersMin = 2 * 1024 * 1024

/** Whether so many rows are better looked for in a sketch. */
export function isSketchable(rows: number, dimension: number): boolean {
  return rows * dimension >= numbersMin
}

const pageBytes = 65_536
/** Rows whose bytes lie side by side. */
const together = 16

/** Address space is not memory, but there is an end to it too: then whole rows are compared. */
let isRoom = true

/** Null where there is no room. */
export function createSketch(dimension: number, rowsMax: number): Sketch | null {
  const kernel = whereRoom(() => createSketchKernel(1))
  return kernel ? over(kernel, dimension, rowsMax) : null
}

/** What allocates, or null; once it failed, it is not tried again. */
function whereRoom<Made>(make: () => Made): Made | null {
  if (!isRoom) return null
  try {
    return make()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    isRoom = false
    return null
  }
}

function over({ memory, sums }: SketchKernel, dimension: number, rowsMax: number): Sketch {
  const columns = columnsOf(dimension)
  const tableEnd = columns * 32
  const outStart = tableEnd
  const start = outStart + 2 * (rowsMax + together)
  let bytes = new Uint8Array(memory.buffer)
  let drawn = 0
  const centre = createCentre(dimension)

  function reserve(count: number): boolean {
    const wanted = start + Math.ceil(count / together) * together * columns
    const pages = Math.ceil((wanted - memory.buffer.byteLength) / pageBytes)
    if (pages <= 0) return true
    if (whereRoom(() => memory.grow(pages)) === null) return false
    bytes = new Uint8Array(memory.buffer)
    return true
  }

  function draw(values: Int8Array, row: number) {
    const { below, middle, above } = centre
    let place = start + (row - (row % together)) * columns + (row % together)
    let byte = 0
    for (let i = 0; i < dimension; i++) {
      const value = values[row * dimension + i]!
      const code = value < middle[i]! ? (value < below[i]! ? 0 : 1) : value < above[i]! ? 2 : 3
      // The first of two dimensions is the upper part of its half.
      byte |= code << [2, 0, 6, 4][i & 3]!
      if ((i & 3) === 3) {
        bytes[place] = byte
        place += together
        byte = 0
      }
    }
    if (dimension & 3) bytes[place] = byte
  }

  return {
    get bytes() {
      return memory.buffer.byteLength
    },
    outdate(from) {
      drawn = Math.min(drawn, from)
    },
    redraw(values, row) {
      if (row < drawn) draw(values, row)
    },

    bringUp(values, count) {
      if (count === drawn) return true
      if (!reserve(count)) return false
      if (centre.isPast(count)) {
        centre.take(values, count)
        drawn = 0
      }
      for (; drawn < count; drawn++) draw(values, drawn)
      return true
    },

    likely(question, from, to, k) {
      const table = sketchTableOf(question)
      bytes.set(table.bytes)
      const first = from - (from % together)
      const end = Math.ceil(to / together) * together
      sums(start + first * columns, start + end * columns, outStart, tableEnd, 15)
      const own = new Uint16Array(memory.buffer, outStart + 2 * (from - first), to - from)
      return likeliest(own, k, table.deviation, from)
    },
  }
}

/**
 * Where numbers are cut into four: around their mean, so that what all rows have in common (some
 * models give every text a common direction) takes no bits.
 */
function createCentre(dimension: number) {
  const below = new Float32Array(dimension)
  const middle = new Float32Array(dimension)
  const above = new Float32Array(dimension)
  let taken = 0

  return {
    below,
    middle,
    above,
    /** Whether so many rows have come that their mean should be taken anew. */
    isPast: (count: number) => taken === 0 || count > 2 * taken,
    take(values: Int8Array, count: number) {
      const squares = new Float64Array(dimension)
      const sums = new Float64Array(dimension)
      for (let at = 0, i = 0; at < count * dimension; at++) {
        sums[i]! += values[at]!
        squares[i]! += values[at]! * values[at]!
        i = i + 1 === dimension ? 0 : i + 1
      }
      let variance = 0
      for (let i = 0; i < dimension; i++) {
        middle[i] = sums[i]! / count
        variance += squares[i]! / count - middle[i]! * middle[i]!
      }
      const spread = cut * Math.sqrt(variance / dimension)
      for (let i = 0; i < dimension; i++) {
        below[i] = middle[i]! - spread
        above[i] = middle[i]! + spread
      }
      taken = count
    },
  }
}
