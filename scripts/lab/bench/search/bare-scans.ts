import { exactSearch, MetricKind } from 'usearch'
import { dotProduct } from '#scripts/lab/bench/generated-vectors.ts'

/** Finds the row whose vector is nearest to a question's. */
export type BareScan = (question: Float32Array) => number

/** Rows that the int8 scan finds, for which float32 decides. */
const rescoredRows = 48

/** A scan of all float32 vectors by usearch, on this thread. */
export const createFloat32Scan =
  (matrix: Float32Array, dimension: number): BareScan =>
  question =>
    nearestRows(matrix, question, dimension, 10)[0]!

/** A scan of the same vectors in int8, a quarter of the bytes; the best rows are compared again in float32. */
export function createInt8Scan(matrix: Float32Array, dimension: number): BareScan {
  const largest = matrix.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  const quantize = (vector: Float32Array): Int8Array =>
    Int8Array.from(vector, value => Math.max(-127, Math.min(127, (value * 127) / largest)))
  const quantized = quantize(matrix)
  return question => {
    const score = (row: number): number =>
      dotProduct(question, matrix.subarray(row * dimension, (row + 1) * dimension))
    const scored = nearestRows(quantized, quantize(question), dimension, rescoredRows).map(row => ({
      row,
      score: score(row),
    }))
    return scored.reduce((best, one) => (one.score > best.score ? one : best)).row
  }
}

/** Rows by inner product, best first. */
function nearestRows<Vectors extends Float32Array | Int8Array>(
  matrix: Vectors,
  question: Vectors,
  dimension: number,
  count: number,
): number[] {
  const threads = 1
  const found = exactSearch(matrix, question, dimension, count, MetricKind.IP, threads)
  return Array.from((found as { keys: BigUint64Array }).keys, Number)
}
