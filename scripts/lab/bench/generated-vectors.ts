/** Uniform random numbers in 0 to 1, the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Distributions of vectors from embedders. `dense`: uniform directions.
 * `clustered`: dense, around a hundred topics. `skewed`: dense, with the common
 * direction and the few large coordinates that some models give every text.
 * `sparse`: a few dozen hashed words, most coordinates zero, some large.
 */
export type VectorKind = 'dense' | 'clustered' | 'skewed' | 'sparse'

export const vectorKinds: readonly VectorKind[] = ['dense', 'clustered', 'skewed', 'sparse']

/** A generator of unit vectors of one kind, the same for the same seed. */
export function createVectorGenerator(
  kind: VectorKind,
  dimension: number,
  seed: number,
): () => Float32Array {
  const random = seededRandom(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const dense = () => normalizeVector(Float32Array.from({ length: dimension }, normal))
  const noise = 1 / Math.sqrt(dimension)

  if (kind === 'dense') return dense
  if (kind === 'clustered') {
    const topics = Array.from({ length: 100 }, dense)
    return () => {
      const topic = topics[Math.floor(random() * topics.length)]!
      return normalizeVector(topic.map(number => number + 0.7 * noise * normal()))
    }
  }
  if (kind === 'skewed') {
    const common = Float32Array.from({ length: dimension }, () => normal() * noise * 0.8)
    for (const huge of [0.3, -0.45, 0.2]) common[Math.floor(random() * dimension)] = huge
    return () => normalizeVector(common.map(number => number + 0.8 * noise * normal()))
  }
  return () => {
    const vector = new Float32Array(dimension)
    const words = 20 + Math.floor(random() * 40)
    for (let word = 0; word < words; word++) {
      // Few words are frequent: the cube of a random number is mostly small.
      const hash = Math.floor(dimension * random() ** 3)
      vector[(hash * 7) % dimension]! += 0.2 + 6 * random() ** 3
      vector[(hash * 20 + 331) % dimension]! -= 0.2 + 6 * random() ** 3
    }
    return normalizeVector(vector)
  }
}

/** Scales a vector to length 1; a zero vector is unchanged. */
function normalizeVector(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector) || 1
  return vector.map(number => number / length)
}

export function dotProduct(one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let i = 0; i < one.length; i++) sum += one[i]! * other[i]!
  return sum
}
