import { clampCosine, lookMax, type Codec, type Question } from '#shared/search/vectors/codec.ts'
import { scan } from '#shared/search/vectors/scan.ts'

const none = { ninth: new Uint8Array(0), scales: new Float32Array(0) }

/** Vectors as they came: four times the memory of int8, exact to float32 rounding. */
export function createFloat32Codec(dimension: number): Codec {
  const asked = { values: new Float32Array(dimension), unit: 1 }
  const placed = new Float32Array(dimension * lookMax)

  /** A copy: the caller's vector may be a view into a larger buffer. */
  function question(vector: Float32Array): Question {
    asked.values.set(vector)
    return asked
  }

  return {
    dimension,
    sketched: false,
    strides: { values: dimension, ninth: 0, scales: 0 },
    allocate: rows => ({ values: new Float32Array(rows * dimension), ...none }),
    encode(vector, { values }, row) {
      values.set(vector, row * dimension)
    },
    question,
    place({ values }, row, place) {
      placed.set(values.subarray(row * dimension, (row + 1) * dimension), place * dimension)
    },
    look(vector, count, cosines) {
      const { rows, dots } = scan(placed, count, question(vector).values, count)
      for (let i = 0; i < count; i++) cosines[rows[i]!] = clampCosine(dots[i]!)
    },
  }
}
