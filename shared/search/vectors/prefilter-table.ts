import { columnsPerGroup } from '#shared/search/vectors/prefilter-kernel.ts'

/** Of a normal distribution cut into four: where it is cut, and what stands for each part (Lloyd-Max). */
export const quantizerCut = 0.98
const [innerLevel, outerLevel] = [0.453, 1.51]
/** What two bits leave unsaid: how far a sum of many numbers is off, against their length. */
const quantizationNoise = 0.33

/** What the numbers of a question are worth to a sketch. */
export type PrefilterTable = {
  /** For each column, low half before high half: what each of its sixteen values adds to a sum. */
  readonly bytes: Uint8Array
  /** By how much the sum of a row is off, one standard deviation. */
  readonly deviation: number
}

/** Columns of a sketch: one byte for four dimensions, and as many as the kernel takes together. */
export function columnCountOf(dimension: number): number {
  return Math.ceil(dimension / (4 * columnsPerGroup)) * columnsPerGroup
}

/** The table of a question, the same object for the same dimension; overwritten by the next question. */
export function prefilterTableOf(query: Int8Array): PrefilterTable {
  let table = tablesByDimension.get(query.length)
  if (!table) {
    table = createTableBuilder(query.length)
    tablesByDimension.set(query.length, table)
  }
  return table(query)
}

const tablesByDimension = new Map<number, (question: Int8Array) => PrefilterTable>()

function createTableBuilder(dimension: number): (query: Int8Array) => PrefilterTable {
  const columns = columnCountOf(dimension)
  const padded = new Int8Array(columns * 4)
  const bytes = new Uint8Array(columns * 32)
  const words = new Int32Array(bytes.buffer)
  const table = { bytes, deviation: 0 }

  return query => {
    // All pieces of all blocks ask the same question.
    if (table.deviation > 0 && isSameQuery(query, padded)) return table
    padded.set(query)
    const step = quantizationStep(padded)
    for (let half = 0; half < columns * 2; half++) {
      writeHalfColumn(words, half, padded[2 * half]! / step, padded[2 * half + 1]! / step)
    }
    let length = 0
    for (let i = 0; i < dimension; i++) length += query[i]! * query[i]!
    table.deviation = Math.max(1, (quantizationNoise * Math.sqrt(length)) / step)
    return table
  }
}

/** The second is longer. */
function isSameQuery(query: Int8Array, padded: Int8Array): boolean {
  for (let i = 0; i < query.length; i++) if (query[i] !== padded[i]) return false
  return true
}

/** The finest step with which no group of halves adds up to more than a byte holds. */
function quantizationStep(query: Int8Array): number {
  const members = 4 * columnsPerGroup
  let most = 0
  for (let group = 0; group < query.length; group += members) {
    for (const half of [0, 2]) {
      let sum = 0
      for (let i = group + half; i < group + members; i += 4) {
        sum += Math.abs(query[i]!) + Math.abs(query[i + 1]!)
      }
      most = Math.max(most, sum)
    }
  }
  // Each of the numbers may be rounded up by a half.
  return Math.max(1e-6, (most * 2 * outerLevel) / (255 - columnsPerGroup))
}

/** The sixteen values of two dimensions: the first says which word, the second which byte of it. */
function writeHalfColumn(words: Int32Array, half: number, one: number, other: number) {
  const bytes = levelContributions(other)
  const ones = levelContributions(one)
  for (let code = 0; code < 4; code++) {
    words[half * 4 + code] = bytes + Math.imul((ones >>> (8 * code)) & 0xff, 0x01010101)
  }
}

/**
 * What each of the four parts is worth to a number, in a byte each. The least is worth 0, so that
 * sums are of whole bytes: all rows get the same too much.
 */
function levelContributions(number: number): number {
  const size = Math.abs(number)
  const second = (size * (outerLevel - innerLevel) + 0.5) | 0
  const third = (size * (outerLevel + innerLevel) + 0.5) | 0
  const fourth = (size * 2 * outerLevel + 0.5) | 0
  return number < 0
    ? fourth | (third << 8) | (second << 16)
    : (second << 8) | (third << 16) | (fourth << 24)
}
