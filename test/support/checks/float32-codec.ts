import {
  clampCosine,
  queriesMax,
  rescoreMax,
  type Codec,
  type EncodedQuery,
} from '#shared/search/vectors/codec.ts'
import { scan } from '#shared/search/vectors/scan.ts'

const emptyColumns = { ninth: new Uint8Array(0), scales: new Float32Array(0) }

/** Unencoded vectors: four times the memory of int8, exact to float32 rounding. */
export function createFloat32Codec(dimension: number): Codec {
  const encoded = Array.from({ length: queriesMax }, () => ({
    values: new Float32Array(dimension),
    unit: 1,
  }))
  let turn = 0
  const staged = new Float32Array(dimension * rescoreMax)

  /** Copies, as the caller's vector may be a view into a larger buffer. */
  function encodeQuery(vector: Float32Array): EncodedQuery {
    turn = (turn + 1) % queriesMax
    const query = encoded[turn]!
    query.values.set(vector)
    return query
  }

  return {
    dimension,
    usesPrefilter: false,
    strides: { values: dimension, ninth: 0, scales: 0 },
    allocate: rows => ({ values: new Float32Array(rows * dimension), ...emptyColumns }),
    encode(vector, { values }, row) {
      values.set(vector, row * dimension)
    },
    encodeQuery,
    stageRow({ values }, row, stagedRow) {
      staged.set(values.subarray(row * dimension, (row + 1) * dimension), stagedRow * dimension)
    },
    rescore(vector, count, cosines) {
      const { rows, dots } = scan(staged, count, encodeQuery(vector).values, count)
      for (let i = 0; i < count; i++) cosines[rows[i]!] = clampCosine(dots[i]!)
    },
  }
}
