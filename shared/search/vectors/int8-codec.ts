import {
  clampCosine,
  queriesMax,
  rescoreMax,
  type Codec,
  type EncodedQuery,
  type EncodedRows,
} from '#shared/search/vectors/codec.ts'
import { scan } from '#shared/search/vectors/scan.ts'

const int8Max = 127

/**
 * Standard deviations at which rotated coordinates, which are distributed normally, are clipped. Measured on 10,000 rows:
 * at 4 the worst score error was 0.008 (768 dimensions), at 4.8 0.002, at 5.2 the top 10 lost 0.4 %.
 */
const clipDeviations = 4.8

/** Steps of the query's low digit within one step of its high digit. */
const lowDigitSteps = 254

/**
 * Scalar quantization with one byte per number. A rotation makes one step size right for all rows, so an integer dot
 * product ranks them. A ninth bit per number stores the half of its step; `rescore` reads it and halves the error (mean
 * 0.0001; the top 10 agrees with float32 in 99 % instead of 98).
 */
export class Int8Codec implements Codec {
  readonly dimension: number
  readonly usesPrefilter: boolean
  readonly strides: Codec['strides']
  readonly #rotate: Rotation
  readonly #rotated: Float64Array
  /** Quantization steps per unit. */
  readonly #steps: number
  readonly #ninthWidth: number
  readonly #queryEncoder: QueryEncoder
  readonly #staged: StagedRows

  /** @param usesPrefilter False compares every row. */
  constructor(dimension: number, usesPrefilter = true) {
    this.dimension = dimension
    this.usesPrefilter = usesPrefilter
    this.#rotate = rotationOf(dimension)
    this.#rotated = new Float64Array(dimension)
    this.#steps = int8Max / Math.min(1, clipDeviations / Math.sqrt(dimension))
    this.#ninthWidth = Math.ceil(dimension / 8)
    this.#queryEncoder = new QueryEncoder(dimension)
    this.#staged = createStagedRows(dimension, this.#ninthWidth)
    this.strides = { values: dimension, ninth: this.#ninthWidth, scales: 1 }
  }

  allocate(rows: number): EncodedRows {
    return {
      values: new Int8Array(rows * this.dimension),
      ninth: new Uint8Array(rows * this.#ninthWidth),
      scales: new Float32Array(rows),
    }
  }

  encode(vector: Float32Array, { values, ninth, scales }: EncodedRows, row: number) {
    const { dimension } = this
    const rotated = this.#rotated
    const steps = this.#steps
    const ninthWidth = this.#ninthWidth
    this.#rotate(vector, rotated)
    const start = row * dimension
    let length = 0
    let selfProduct = 0
    let bits = 0
    for (let i = 0; i < dimension; i++) {
      const number = rotated[i]!
      // Without a branch: mispredictions would cost 10 µs a row.
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
    // Makes the product of a row with itself exact, so that the same text scores 1.
    scales[row] = selfProduct > 0 ? (2 * length) / selfProduct : 0
  }

  encodeQuery(vector: Float32Array): EncodedQuery {
    return this.#queryEncoder.encode(vector)
  }

  stageRow({ values, ninth, scales }: EncodedRows, row: number, stagedRow: number) {
    const { dimension } = this
    const ninthWidth = this.#ninthWidth
    const staged = this.#staged
    const rowValues = values.subarray(row * dimension, (row + 1) * dimension)
    staged.values.set(rowValues, stagedRow * dimension)
    for (let i = 0; i < ninthWidth; i++) {
      staged.ninth[stagedRow * ninthWidth + i] = bitsAsBytes[ninth[row * ninthWidth + i]!]!
    }
    staged.scales[stagedRow] = scales[row]!
  }

  rescore(vector: Float32Array, count: number, cosines: Float32Array) {
    const { values: high, highPadded, low, unit, sum } = this.#queryEncoder.encode(vector)
    const { values, ninthBytes, scales } = this.#staged
    const byHigh = scan(values, count, high, count)
    const byLow = scan(values, count, low, count)
    const byNinth = scan(ninthBytes, count, highPadded, count)
    const products = new Float64Array(count).fill(-0.25 * sum)
    for (let i = 0; i < count; i++) {
      products[byHigh.rows[i]!]! += byHigh.dots[i]!
      products[byLow.rows[i]!]! += byLow.dots[i]! / lowDigitSteps
      products[byNinth.rows[i]!]! += byNinth.dots[i]! / 2
    }
    for (let i = 0; i < count; i++) cosines[i] = clampCosine(products[i]! * scales[i]! * unit)
  }
}

type StagedRows = {
  values: Int8Array
  /** Eight bytes, each 0 or 1, for every byte of `EncodedRows.ninth`. */
  ninth: Float64Array
  /** The buffer of `ninth` for a scan. */
  ninthBytes: Int8Array
  scales: Float32Array
}

function createStagedRows(dimension: number, ninthWidth: number): StagedRows {
  const ninth = new Float64Array(ninthWidth * rescoreMax)
  return {
    values: new Int8Array(dimension * rescoreMax),
    ninth,
    ninthBytes: new Int8Array(ninth.buffer),
    scales: new Float32Array(rescoreMax),
  }
}

/** A query in two int8 digits, so that its rounding does not show in a cosine. */
type Int8Query = EncodedQuery & {
  /** The high digits. */
  values: Int8Array
  /** `values`, padded with zeros to a multiple of 8. */
  highPadded: Int8Array
  low: Int8Array
  /** Sum of the high digits. */
  sum: number
}

type KnownQuery = {
  readonly vector: Float32Array
  readonly encoded: { -readonly [Key in keyof Int8Query]: Int8Query[Key] }
}

/** Encodes queries into scratch objects and keeps the last ones. */
class QueryEncoder {
  readonly #rotate: Rotation
  readonly #rotated: Float64Array
  readonly #known: KnownQuery[] = []
  #next = 0

  constructor(dimension: number) {
    this.#rotate = rotationOf(dimension)
    this.#rotated = new Float64Array(dimension)
  }

  encode(vector: Float32Array): Int8Query {
    for (const one of this.#known) if (isSameVector(vector, one.vector)) return one.encoded
    const known = (this.#known[this.#next] ??= createKnownQuery(this.#rotated.length))
    this.#next = (this.#next + 1) % queriesMax
    known.vector.set(vector)
    this.#encodeInto(vector, known.encoded)
    return known.encoded
  }

  #encodeInto(vector: Float32Array, encoded: KnownQuery['encoded']) {
    const rotated = this.#rotated
    const dimension = rotated.length
    this.#rotate(vector, rotated)
    let peak = 0
    for (let i = 0; i < dimension; i++) peak = Math.max(peak, Math.abs(rotated[i]!))
    const steps = peak > 0 ? int8Max / peak : 0
    const { values, low } = encoded
    let sum = 0
    for (let i = 0; i < dimension; i++) {
      const exact = rotated[i]! * steps
      const high = Math.floor(exact + 0.5)
      values[i] = high
      low[i] = Math.floor((exact - high) * lowDigitSteps + 0.5)
      sum += high
    }
    encoded.highPadded.set(values)
    encoded.sum = sum
    encoded.unit = peak / int8Max
  }
}

const createKnownQuery = (dimension: number): KnownQuery => ({
  vector: new Float32Array(dimension).fill(Number.NaN),
  encoded: {
    values: new Int8Array(dimension),
    highPadded: new Int8Array(Math.ceil(dimension / 8) * 8),
    low: new Int8Array(dimension),
    unit: 0,
    sum: 0,
  },
})

/** Whether vectors are equal. A search asks for each vector once per tier and scan; comparing costs a tenth of encoding. */
function isSameVector(vector: Float32Array, known: Float32Array): boolean {
  for (let i = 0; i < known.length; i++) if (vector[i] !== known[i]) return false
  return true
}

/** The eight bits of every byte as eight bytes, copied in one store; bytes 0 and 1 make no NaN. */
const bitsAsBytes = (() => {
  const bytes = Uint8Array.from({ length: 256 * 8 }, (_, i) => ((i >> 3) >> (i & 7)) & 1)
  return new Float64Array(bytes.buffer)
})()

/** Writes a rotated vector into an array of the same length. */
export type Rotation = (vector: Float32Array, into: Float64Array) => void

const rotations = new Map<number, Rotation>()

/**
 * Returns a fixed random rotation of a vector space, equal in every process. Lengths and angles stay, but outlier
 * coordinates (of hashed words, or the few huge ones of some models) are spread over all. One int8 step size then suits
 * every vector, and a dot product ranks rows as the cosine would, in half its time.
 *
 * Random signs and a Walsh-Hadamard transform over the largest power of two that fits, at the front and, where it does
 * not cover all coordinates, again at the back. About 7 µs at 1,536 dimensions.
 */
export function rotationOf(dimension: number): Rotation {
  const known = rotations.get(dimension)
  if (known) return known

  // A shift, not a power: a power is a double, and so would every index be (17 µs, not 7).
  const size = 1 << Math.floor(Math.log2(dimension))
  const passes = dimension === size ? [0] : [0, dimension - size]
  // Signs include the normalising factor: one multiplication instead of two.
  const signs = passes.map((_, pass) => randomSigns(size, pass + 1))

  const rotation: Rotation = (vector, into) => {
    into.set(vector)
    for (let pass = 0; pass < passes.length; pass++) {
      const from = passes[pass]!
      const sign = signs[pass]!
      for (let i = 0; i < size; i++) into[from + i]! *= sign[i]!
      walshHadamardTransform(into, from, size)
    }
  }
  rotations.set(dimension, rotation)
  return rotation
}

function randomSigns(size: number, seed: number): Float64Array {
  const length = 1 / Math.sqrt(size)
  let state = Math.imul(seed, 0x9e3779b9)
  return Float64Array.from({ length: size }, () => {
    // xorshift32; any fair and reproducible generator would do.
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state < 0 ? -length : length
  })
}

/** Transforms in place, two levels per pass: half the loads and stores of one level each. */
function walshHadamardTransform(values: Float64Array, from: number, size: number) {
  const end = from + size
  let step = 1
  for (; step * 4 <= size; step *= 4) {
    for (let block = from; block < end; block += step * 4) {
      for (let i = block; i < block + step; i++) {
        const a = values[i]!
        const b = values[i + step]!
        const c = values[i + 2 * step]!
        const d = values[i + 3 * step]!
        values[i] = a + b + (c + d)
        values[i + step] = a - b + (c - d)
        values[i + 2 * step] = a + b - (c + d)
        values[i + 3 * step] = a - b - (c - d)
      }
    }
  }
  if (step === size) return
  for (let i = from; i < from + step; i++) {
    const a = values[i]!
    const b = values[i + step]!
    values[i] = a + b
    values[i + step] = a - b
  }
}

const codecs = new Map<number, Int8Codec>()

/** Returns the codec of a dimension: one instance, which owns the scratch memory of scans. */
export function codecOf(dimension: number): Codec {
  const codec = codecs.get(dimension) ?? new Int8Codec(dimension)
  codecs.set(dimension, codec)
  return codec
}
