import { relatedTo } from '#shared/recall/related.ts'
import { weightOf } from '#shared/recall/term-weights.ts'

export const dimension = 1024

/** What a term adds to the vector of its text: values at indices. */
export type Feature = { readonly indices: Uint16Array; readonly values: Float32Array }

export const tuning = {
  copies: 4,
  grams: 0.3,
  related: 0.9,
  relatedMax: 40,
  skeleton: 0.3,
  degree: 0.5,
  prior: 1,
  name: 0.4,
}

const features = new Map<string, Feature>()
const featuresMax = 20_000

export function resetFeatures() {
  features.clear()
}

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
  add(`w ${term}`, 1)
  const grams = gramsOf(term)
  for (const gram of grams) add(`g ${gram}`, tuning.grams / Math.sqrt(grams.length))
  const skeleton = skeletonOf(term)
  if (skeleton) add(`s ${skeleton}`, tuning.skeleton)
  const related = relatedTo(term).slice(0, tuning.relatedMax)
  const total = Math.sqrt(related.reduce((sum, { weight }) => sum + weight * weight, 0))
  // A word with many relatives is less like each of them.
  const share = tuning.related / Math.max(1, total ** (2 * tuning.degree))
  for (const { term: other, weight } of related) add(`w ${other}`, weight * share)

  const length = weightOf(term) ** tuning.prior / Math.hypot(...scratch)
  const indices: number[] = []
  for (let i = 0; i < dimension; i++) if (scratch[i] !== 0) indices.push(i)
  return {
    indices: Uint16Array.from(indices),
    values: Float32Array.from(indices, index => scratch[index]! * length),
  }
}

function gramsOf(term: string): string[] {
  if (!/^[\p{L}']{4,}$/u.test(term)) return []
  const marked = `^${term}$`
  const grams: string[] = []
  for (const size of [3, 4]) {
    for (let i = 0; i + size <= marked.length; i++) grams.push(marked.slice(i, i + size))
  }
  return grams
}

function skeletonOf(term: string): string | undefined {
  if (!/^[a-z]{5,}$/.test(term)) return undefined
  const consonants = [...new Set(term.slice(1).replace(/[aeiouy]/g, ''))].sort().join('')
  return consonants.length >= 2 ? term[0] + consonants : undefined
}

function add(name: string, value: number) {
  let state = 0x811c9dc5
  for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 0x01000193)
  const part = value / Math.sqrt(tuning.copies)
  for (let copy = 0; copy < tuning.copies; copy++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d)
    state = (Math.imul(state ^ (state >>> 12), 0x297a2d39) + 0x9e3779b9) | 0
    const mixed = state ^ (state >>> 15)
    scratch[(mixed >>> 1) % dimension]! += mixed & 1 ? part : -part
  }
}
