/** Writes the rotated vector into a scratch array of the same length. */
export type Rotation = (vector: Float32Array, into: Float64Array) => void

const rotations = new Map<number, Rotation>()

/**
 * A fixed random rotation of a vector space: lengths and angles stay, but outlier coordinates (of
 * hashed words, or the few huge ones of some models) are spread over all. One int8 step size then
 * suits every vector, so all rows have the same integer length and a dot product ranks them as the
 * cosine would, in half its time.
 *
 * Random signs and a Walsh-Hadamard transform over the largest power of two that fits, at the front
 * and, where it does not cover all coordinates, again at the back. Equal in every process. About 7 µs
 * at 1,536 dimensions.
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
    // xorshift32: any fair and reproducible generator will do.
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state < 0 ? -length : length
  })
}

/** Walsh-Hadamard in place, two levels per pass: half the loads and stores of one level each. */
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
