import { queriesMax } from '#shared/search/vectors/codec.ts'
import { columnsPerGroup } from '#shared/search/vectors/prefilter-kernel.ts'

/** The optimal four-level quantizer of a normal distribution (Lloyd-Max): its cuts and its levels. */
export const quantizerCut = 0.98
const [innerLevel, outerLevel] = [0.453, 1.51]
/** Error of a sum of quantized products, relative to the length of the query. */
const quantizationNoise = 0.33

/** The lookup table of a query for the two-bit codes of rows. */
export type PrefilterTable = {
  /** For each column, low half before high half: the contribution of each of its sixteen values. */
  readonly bytes: Uint8Array
  /** Standard deviation of the error of a row's sum. */
  readonly deviation: number
}

/** Columns of the codes: one byte for four dimensions, padded to whole groups of the kernel. */
export function columnCountOf(dimension: number): number {
  return Math.ceil(dimension / (4 * columnsPerGroup)) * columnsPerGroup
}

/** The table of a query, overwritten when `queriesMax` others have been asked for since. */
export function prefilterTableOf(query: Int8Array): PrefilterTable {
  let known = tablesByDimension.get(query.length)
  if (!known) {
    known = { tables: [], next: 0 }
    tablesByDimension.set(query.length, known)
  }
  // Every chunk of every tier is searched with the same queries.
  for (const one of known.tables) if (isSameQuery(query, one.padded)) return one
  const table = (known.tables[known.next] ??= createTable(query.length))
  known.next = (known.next + 1) % queriesMax
  fillTable(table, query)
  return table
}

type KnownTable = { bytes: Uint8Array; deviation: number; readonly padded: Int8Array }

const tablesByDimension = new Map<number, { readonly tables: KnownTable[]; next: number }>()

function createTable(dimension: number): KnownTable {
  const columns = columnCountOf(dimension)
  return { bytes: new Uint8Array(columns * 32), deviation: 0, padded: new Int8Array(columns * 4) }
}

function fillTable(table: KnownTable, query: Int8Array) {
  const { padded, bytes } = table
  padded.set(query)
  const words = new Int32Array(bytes.buffer)
  const step = quantizationStep(padded)
  for (let half = 0; half < padded.length / 2; half++) {
    writeHalfColumn(words, half, padded[2 * half]! / step, padded[2 * half + 1]! / step)
  }
  let length = 0
  for (let i = 0; i < query.length; i++) length += query[i]! * query[i]!
  table.deviation = Math.max(1, (quantizationNoise * Math.sqrt(length)) / step)
}

/** `padded` may be longer. */
function isSameQuery(query: Int8Array, padded: Int8Array): boolean {
  for (let i = 0; i < query.length; i++) if (query[i] !== padded[i]) return false
  return true
}

/** The finest step with which the sum of no group of halves exceeds a byte. */
function quantizationStep(query: Int8Array): number {
  const members = 4 * columnsPerGroup
  let max = 0
  for (let group = 0; group < query.length; group += members) {
    for (const half of [0, 2]) {
      let sum = 0
      for (let i = group + half; i < group + members; i += 4) {
        sum += Math.abs(query[i]!) + Math.abs(query[i + 1]!)
      }
      max = Math.max(max, sum)
    }
  }
  // Each contribution may be rounded up by a half.
  return Math.max(1e-6, (max * 2 * outerLevel) / (255 - columnsPerGroup))
}

/** Writes the sixteen contributions of two dimensions: word by the first code, byte by the second. */
function writeHalfColumn(words: Int32Array, half: number, one: number, other: number) {
  const bytes = levelContributions(other)
  const ones = levelContributions(one)
  for (let code = 0; code < 4; code++) {
    words[half * 4 + code] = bytes + Math.imul((ones >>> (8 * code)) & 0xff, 0x01010101)
  }
}

/**
 * The contribution of each of the four codes for a number of the query, a byte each. Shifted so that
 * the least is 0 and all are unsigned; the shift is equal for all rows.
 */
function levelContributions(number: number): number {
  const magnitude = Math.abs(number)
  const second = (magnitude * (outerLevel - innerLevel) + 0.5) | 0
  const third = (magnitude * (outerLevel + innerLevel) + 0.5) | 0
  const fourth = (magnitude * 2 * outerLevel + 0.5) | 0
  return number < 0
    ? fourth | (third << 8) | (second << 16)
    : (second << 8) | (third << 16) | (fourth << 24)
}
