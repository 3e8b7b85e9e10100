import { relatedTo } from '#shared/search/words/related.ts'
import { weightOf } from '#shared/search/words/term-weights.ts'

/**
 * Recall by vectors alone rose with the dimension (composite 0.456 at 384, 0.486 at 512, 0.491 at
 * 768, 0.507 at 1,024), fused with words it hardly did; 1,024 is one clean rotation for an image.
 */
export const dimension = 1024

/** What a term adds to the vector of a text: values at indices. */
export type Feature = { readonly indices: Uint16Array; readonly values: Float32Array }

/** Every name is written to so many places: collisions of two names average out. */
const copies = 4
/** Against the term itself, all pieces of its spelling together. */
const spellingShare = 0.3
const skeletonShare = 0.3
/** Against the term itself, a word that means the same. */
const relatedShare = 0.9
const relatedMax = 24

const features = new Map<string, Feature>()
/** About 20 MB when full. */
const featuresMax = 20_000

/**
 * The feature of a term: its name, the pieces of its spelling (so that slips and inflections stay
 * near) and the words related to it, hashed with signs. Its length is how much the term tells.
 */
export function featureOf(term: string): Feature {
  const known = features.get(term)
  if (known) return known
  const feature = createFeature(term)
  if (features.size >= featuresMax) features.clear()
  features.set(term, feature)
  return feature
}

const scratch = new Float32Array(dimension)

function createFeature(term: string): Feature {
  scratch.fill(0)
  addName(`word ${term}`, 1)
  const pieces = piecesOf(term)
  for (const piece of pieces) addName(`piece ${piece}`, spellingShare / Math.sqrt(pieces.length))
  const skeleton = skeletonOf(term)
  if (skeleton) addName(`skeleton ${skeleton}`, skeletonShare)
  for (const { term: other, weight } of relatedTo(term).slice(0, relatedMax)) {
    addName(`word ${other}`, weight * relatedShare)
  }

  let sum = 0
  for (const value of scratch) sum += value * value
  const length = weightOf(term) / Math.sqrt(sum)
  const indices = Uint16Array.from(scratch.keys()).filter(index => scratch[index] !== 0)
  return { indices, values: Float32Array.from(indices, index => scratch[index]! * length) }
}

/** Three and four letters in a row, its ends marked. */
function piecesOf(term: string): string[] {
  if (!/^\p{L}{4,}$/u.test(term)) return []
  const marked = `^${term}$`
  return [3, 4].flatMap(size =>
    Array.from({ length: marked.length - size + 1 }, (_, i) => marked.slice(i, i + size)),
  )
}

/** The first letter and the set of consonants: most slips of spelling leave it as it is. */
function skeletonOf(term: string): string | undefined {
  if (!/^[a-z]{5,}$/.test(term)) return undefined
  const consonants = [...new Set(term.slice(1).replace(/[aeiouy]/g, ''))].sort().join('')
  return consonants.length >= 2 ? term.charAt(0) + consonants : undefined
}

function addName(name: string, value: number) {
  let state = 0x811c9dc5
  for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 0x01000193)
  const part = value / Math.sqrt(copies)
  for (let copy = 0; copy < copies; copy++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d)
    state = (Math.imul(state ^ (state >>> 12), 0x297a2d39) + 0x9e3779b9) | 0
    const mixed = state ^ (state >>> 15)
    scratch[(mixed >>> 1) % dimension]! += mixed & 1 ? part : -part
  }
}
