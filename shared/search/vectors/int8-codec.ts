import {
  clampCosine,
  rescoreMax,
  type Codec,
  type EncodedRows,
} from '#shared/search/vectors/codec.ts'
import { rotationOf } from '#shared/search/vectors/rotation.ts'
import { scan } from '#shared/search/vectors/scan.ts'

const int8Max = 127

/**
 * Rotated coordinates are spread like a normal distribution; beyond this many
 * standard deviations they are cut off. Measured on 10,000 rows: at 4 the worst
 * score error was 0.008 (768 dimensions), at 4.8 0.002, at 5.2 the top 10 lost 0.4 %.
 */
const clipDeviations = 4.8

/** Steps of the question's second digit within one step of its first. */
const lowDigitSteps = 254

/**
 * One byte per number after a rotation that makes one step size right for all
 * rows, so that a plain integer dot product ranks them. A ninth bit per number
 * says in which half of its step the number lay: the second look reads it and
 * halves the error (mean 0.0001; the top 10 agrees with float32 in 99 % instead of 98).
 */
export function createInt8Codec(dimension: number): Codec {
  const rotate = rotationOf(dimension)
  const rotated = new Float64Array(dimension)
  const steps = int8Max / Math.min(1, clipDeviations / Math.sqrt(dimension))
  const ninthWidth = Math.ceil(dimension / 8)
  const queryEncoder = createQueryEncoder(dimension)
  const staged = {
    values: new Int8Array(dimension * rescoreMax),
    // Eight 0 or 1 bytes for every byte of `ninth`.
    ninth: new Float64Array(ninthWidth * rescoreMax),
    scales: new Float32Array(rescoreMax),
  }
  const stagedNinth = new Int8Array(staged.ninth.buffer)

  function encode(vector: Float32Array, { values, ninth, scales }: EncodedRows, row: number) {
    rotate(vector, rotated)
    const start = row * dimension
    let length = 0
    let selfProduct = 0
    let bits = 0
    for (let i = 0; i < dimension; i++) {
      const number = rotated[i]!
      // The half step it lies in. No branch here: every other guess would be wrong, 10 µs a row.
      const half = Math.floor(Math.max(-2 * int8Max - 1, Math.min(2 * int8Max, number * steps * 2)))
      values[start + i] = (half + 1) >> 1
      bits |= (~half & 1) << (i & 7)
      if ((i & 7) === 7) {
        ninth[row * ninthWidth + (i >> 3)] = bits
        bits = 0
      }
      length += number * number
      selfProduct += number * (half + 0.5)
    }
    if (dimension & 7) ninth[(row + 1) * ninthWidth - 1] = bits
    // Makes a row's product with itself exact, so the same text scores 1.
    scales[row] = selfProduct > 0 ? (2 * length) / selfProduct : 0
  }

  function rescore(vector: Float32Array, count: number, cosines: Float32Array) {
    const { values: high, highPadded, low, unit, sum } = queryEncoder.of(vector)
    const first = scan(staged.values, count, high, count)
    const second = scan(staged.values, count, low, count)
    const ninth = scan(stagedNinth, count, highPadded, count)
    const products = new Float64Array(count).fill(-0.25 * sum)
    for (let i = 0; i < count; i++) {
      products[first.rows[i]!]! += first.dots[i]!
      products[second.rows[i]!]! += second.dots[i]! / lowDigitSteps
      products[ninth.rows[i]!]! += ninth.dots[i]! / 2
    }
    for (let i = 0; i < count; i++) {
      cosines[i] = clampCosine(products[i]! * staged.scales[i]! * unit)
    }
  }

  return {
    dimension,
    usesPrefilter: true,
    strides: { values: dimension, ninth: ninthWidth, scales: 1 },
    allocate: rows => ({
      values: new Int8Array(rows * dimension),
      ninth: new Uint8Array(rows * ninthWidth),
      scales: new Float32Array(rows),
    }),
    encode,
    encodeQuery: vector => queryEncoder.of(vector),
    stageRow({ values, ninth, scales }, row, stagedRow) {
      staged.values.set(
        values.subarray(row * dimension, (row + 1) * dimension),
        stagedRow * dimension,
      )
      for (let i = 0; i < ninthWidth; i++) {
        staged.ninth[stagedRow * ninthWidth + i] = bitsAsBytes[ninth[row * ninthWidth + i]!]!
      }
      staged.scales[stagedRow] = scales[row]!
    },
    rescore,
  }
}

/**
 * A question in two digits of int8, the second a 254th of the first, so that its
 * own rounding no longer shows in a cosine.
 */
function createQueryEncoder(dimension: number) {
  const rotate = rotationOf(dimension)
  const rotated = new Float64Array(dimension)
  const lastVector = new Float32Array(dimension).fill(Number.NaN)
  const highPadded = new Int8Array(Math.ceil(dimension / 8) * 8)
  const encoded = {
    values: new Int8Array(dimension),
    highPadded,
    low: new Int8Array(dimension),
    unit: 0,
    sum: 0,
  }

  /** All tiers ask the same question, nearest and by rows: comparing costs a tenth of preparing. */
  function isLastVector(vector: Float32Array) {
    for (let i = 0; i < dimension; i++) if (vector[i] !== lastVector[i]) return false
    return true
  }

  return {
    of(vector: Float32Array) {
      if (isLastVector(vector)) return encoded
      lastVector.set(vector)
      rotate(vector, rotated)
      let peak = 0
      for (let i = 0; i < dimension; i++) peak = Math.max(peak, Math.abs(rotated[i]!))
      const steps = peak > 0 ? int8Max / peak : 0
      let sum = 0
      for (let i = 0; i < dimension; i++) {
        const exact = rotated[i]! * steps
        const high = Math.floor(exact + 0.5)
        encoded.values[i] = high
        encoded.low[i] = Math.floor((exact - high) * lowDigitSteps + 0.5)
        sum += high
      }
      highPadded.set(encoded.values)
      encoded.sum = sum
      encoded.unit = peak / int8Max
      return encoded
    },
  }
}

/** The eight bits of every byte as eight bytes, copied in one store; bytes 0 and 1 make no NaN. */
const bitsAsBytes = (() => {
  const bytes = Uint8Array.from({ length: 256 * 8 }, (_, i) => ((i >> 3) >> (i & 7)) & 1)
  return new Float64Array(bytes.buffer)
})()
