import type { Embedder } from '#shared/embedding/embedder.ts'
import { dimension, featureOf, tuning } from '#shared/embedding/local-words.ts'
import { termsOf } from '#shared/recall/words.ts'

export function localEmbedder(): Embedder {
  return {
    model: 'local',
    dimension,
    space: 'local_v1',
    calibration: { unrelated: 0.05, same: 0.75, floor: 0.2 },
    embedTexts: texts => Promise.resolve(texts.map(text => embed(text))),
    embedQuery: text => Promise.resolve(embed(text, 0)),
  }
}

export const bias = { value: 1 }
export function embed(text: string, side = bias.value): Float32Array {
  const counts = new Map<string, number>()
  for (const term of termsOf(text)) {
    if (/^[?#%@]/.test(term)) continue
    counts.set(term, (counts.get(term) ?? 0) + 1)
  }
  const names = namesIn(text)
  const vector = new Float32Array(dimension)
  for (const [term, count] of counts) {
    const { indices, values } = featureOf(term)
    const factor = (count > 1 ? 1 + Math.log(count) : 1) * (names.has(term) ? tuning.name : 1)
    for (let i = 0; i < indices.length; i++) vector[indices[i]!]! += values[i]! * factor
  }
  let sum = side * side
  for (let i = 0; i < dimension; i++) sum += vector[i]! * vector[i]!
  vector[0]! += side
  if (sum === 0) {
    vector[0] = 1
    return vector
  }
  const length = 1 / Math.sqrt(sum)
  for (let i = 0; i < dimension; i++) vector[i]! *= length
  return vector
}

const inner = /(?<=[\p{L}\d,;–-]\s)\p{Lu}[\p{L}'’]+/gu
function namesIn(text: string): Set<string> {
  const found = text.match(inner)
  if (!found) return new Set()
  const words = text.split(/\s+/).length
  if (found.length > 1 && found.length > words * 0.3) return new Set()
  return new Set(found.flatMap(name => termsOf(name)))
}
