import { relatedTerms } from '#shared/search/words/related-terms.ts'
import { termWeight } from '#shared/search/words/term-weights.ts'

/**
 * Recall by vectors alone rose with the dimension (composite 0.456 at 384, 0.486 at 512, 0.491 at 768, 0.507 at
 * 1,024), fused with words hardly; 1,024 is one rotation of an index.
 */
export const dimension = 1024

/** The part of a term in a text's vector: values at indices. */
export type Feature = { readonly indices: Uint16Array; readonly values: Float32Array }

/** Each name is hashed to several indices, so that collisions average out. */
const hashCopies = 4
/** Weight of all n-grams together, relative to the term itself. */
const ngramShare = 0.3
const skeletonShare = 0.3
/** Weight of a related word, relative to the term itself. */
const relatedShare = 0.9
const relatedMax = 24

const featureCache = new Map<string, Feature>()
/** About 20 MB when full. */
const featuresMax = 20_000

/**
 * Hashes a term with signs: its name, the n-grams of its spelling, so that typing errors and inflections stay near, and
 * its related words. The length is the weight of the term.
 */
export function getFeature(term: string): Feature {
  const known = featureCache.get(term)
  if (known) return known
  const feature = createFeature(term)
  if (featureCache.size >= featuresMax) featureCache.clear()
  featureCache.set(term, feature)
  return feature
}

const accumulator = new Float32Array(dimension)

function createFeature(term: string): Feature {
  accumulator.fill(0)
  addHashed(`word ${term}`, 1)
  const ngrams = characterNgrams(term)
  for (const ngram of ngrams) addHashed(`piece ${ngram}`, ngramShare / Math.sqrt(ngrams.length))
  const skeleton = consonantSkeleton(term)
  if (skeleton) addHashed(`skeleton ${skeleton}`, skeletonShare)
  for (const { term: other, weight } of relatedTerms(term).slice(0, relatedMax)) {
    addHashed(`word ${other}`, weight * relatedShare)
  }

  let sum = 0
  for (const value of accumulator) sum += value * value
  const scale = termWeight(term) / Math.sqrt(sum)
  return sparse(accumulator, scale)
}

function sparse(vector: Float32Array, scale: number): Feature {
  const indices = new Uint16Array(vector.length)
  let count = 0
  for (let index = 0; index < vector.length; index++)
    if (vector[index] !== 0) indices[count++] = index
  const used = indices.slice(0, count)
  return { indices: used, values: Float32Array.from(used, index => vector[index]! * scale) }
}

/** Sequences of three and four letters, with marked ends. */
function characterNgrams(term: string): string[] {
  if (!/^\p{L}{4,}$/u.test(term)) return []
  const padded = `^${term}$`
  return [3, 4].flatMap(size =>
    Array.from({ length: padded.length - size + 1 }, (_, i) => padded.slice(i, i + size)),
  )
}

/** The first letter and the set of consonants: most typing errors do not change it. */
function consonantSkeleton(term: string): string | undefined {
  if (!/^[a-z]{5,}$/.test(term)) return undefined
  const consonants = [...new Set(term.slice(1).replace(/[aeiouy]/g, ''))].sort().join('')
  return consonants.length >= 2 ? term.charAt(0) + consonants : undefined
}

function addHashed(name: string, value: number) {
  let state = 0x811c9dc5
  for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 0x01000193)
  const part = value / Math.sqrt(hashCopies)
  for (let copy = 0; copy < hashCopies; copy++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d)
    state = (Math.imul(state ^ (state >>> 12), 0x297a2d39) + 0x9e3779b9) | 0
    const mixed = state ^ (state >>> 15)
    accumulator[(mixed >>> 1) % dimension]! += mixed & 1 ? part : -part
  }
}
