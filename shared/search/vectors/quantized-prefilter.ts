import {
  createPrefilterKernel,
  type PrefilterKernel,
} from '#shared/search/vectors/prefilter-kernel.ts'
import {
  columnCountOf,
  quantizerCut,
  prefilterTableOf,
} from '#shared/search/vectors/prefilter-table.ts'
import { selectAboveThreshold } from '#shared/search/vectors/select-above-threshold.ts'

/**
 * Two bits for each number of up to so many rows, in the cache where the rows themselves are not:
 * what it takes to leave out the rows that cannot be among the best.
 */
export type QuantizedPrefilter = {
  readonly bytes: number
  /** Rows from this one on have changed or moved. */
  invalidateFrom(from: number): void
  /** One row has changed. */
  update(values: Int8Array, row: number): void
  /** Draws what is new among the first `count` rows; false when there is no room for them. */
  sync(values: Int8Array, count: number): boolean
  /**
   * Rows of [from, to), ascending, among which the best `k` nearly always are; or null when that would
   * be so many that one may as well look at all of them. What is new must have been drawn.
   */
  candidates(question: Int8Array, from: number, to: number, k: number): Uint32Array | null
}

/** Fewer numbers than these stay in the cache themselves: looking at every row is as fast. */
const elementsMin = 2 * 1024 * 1024

/** Whether so many rows are better looked for in a sketch. */
export function isPrefilterUseful(rows: number, dimension: number): boolean {
  return rows * dimension >= elementsMin
}

const pageBytes = 65_536
/** Rows whose bytes lie side by side. */
const rowsPerGroup = 16

/** Address space is not memory, but there is an end to it too: then whole rows are compared. */
let canAllocate = true

/** Null where there is no room. */
export function createQuantizedPrefilter(
  dimension: number,
  rowsMax: number,
): QuantizedPrefilter | null {
  const kernel = tryAllocate(() => createPrefilterKernel(1))
  return kernel ? buildPrefilter(kernel, dimension, rowsMax) : null
}

/** What allocates, or null; once it failed, it is not tried again. */
function tryAllocate<Made>(make: () => Made): Made | null {
  if (!canAllocate) return null
  try {
    return make()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    canAllocate = false
    return null
  }
}

function buildPrefilter(
  { memory, sums }: PrefilterKernel,
  dimension: number,
  rowsMax: number,
): QuantizedPrefilter {
  const columns = columnCountOf(dimension)
  const tableEnd = columns * 32
  const outStart = tableEnd
  const start = outStart + 2 * (rowsMax + rowsPerGroup)
  let bytes = new Uint8Array(memory.buffer)
  let encodedCount = 0
  const quantizer = createQuantizer(dimension)

  function reserve(count: number): boolean {
    const wanted = start + Math.ceil(count / rowsPerGroup) * rowsPerGroup * columns
    const pages = Math.ceil((wanted - memory.buffer.byteLength) / pageBytes)
    if (pages <= 0) return true
    if (tryAllocate(() => memory.grow(pages)) === null) return false
    bytes = new Uint8Array(memory.buffer)
    return true
  }

  function encodeRow(values: Int8Array, row: number) {
    const { below, middle, above } = quantizer
    let offset = start + (row - (row % rowsPerGroup)) * columns + (row % rowsPerGroup)
    let byte = 0
    for (let i = 0; i < dimension; i++) {
      const value = values[row * dimension + i]!
      const code = value < middle[i]! ? (value < below[i]! ? 0 : 1) : value < above[i]! ? 2 : 3
      // The first of two dimensions is the upper part of its half.
      byte |= code << [2, 0, 6, 4][i & 3]!
      if ((i & 3) === 3) {
        bytes[offset] = byte
        offset += rowsPerGroup
        byte = 0
      }
    }
    if (dimension & 3) bytes[offset] = byte
  }

  return {
    get bytes() {
      return memory.buffer.byteLength
    },
    invalidateFrom(from) {
      encodedCount = Math.min(encodedCount, from)
    },
    update(values, row) {
      if (row < encodedCount) encodeRow(values, row)
    },

    sync(values, count) {
      if (count === encodedCount) return true
      if (!reserve(count)) return false
      if (quantizer.isPast(count)) {
        quantizer.take(values, count)
        encodedCount = 0
      }
      for (; encodedCount < count; encodedCount++) encodeRow(values, encodedCount)
      return true
    },

    candidates(question, from, to, k) {
      const table = prefilterTableOf(question)
      bytes.set(table.bytes)
      const first = from - (from % rowsPerGroup)
      const end = Math.ceil(to / rowsPerGroup) * rowsPerGroup
      sums(start + first * columns, start + end * columns, outStart, tableEnd, 15)
      const rowSums = new Uint16Array(memory.buffer, outStart + 2 * (from - first), to - from)
      return selectAboveThreshold(rowSums, k, table.deviation, from)
    },
  }
}

/**
 * Where numbers are cut into four: around their mean, so that what all rows have in common (some
 * models give every text a common direction) takes no bits.
 */
function createQuantizer(dimension: number) {
  const below = new Float32Array(dimension)
  const middle = new Float32Array(dimension)
  const above = new Float32Array(dimension)
  let fittedCount = 0

  return {
    below,
    middle,
    above,
    /** Whether so many rows have come that their mean should be taken anew. */
    isPast: (count: number) => fittedCount === 0 || count > 2 * fittedCount,
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
      const spread = quantizerCut * Math.sqrt(variance / dimension)
      for (let i = 0; i < dimension; i++) {
        below[i] = middle[i]! - spread
        above[i] = middle[i]! + spread
      }
      fittedCount = count
    },
  }
}
