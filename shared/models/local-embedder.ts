import type { Embedder } from '#shared/domain/embedder.ts'
import { dimension, featureOf } from '#shared/models/local-features.ts'
import { relatedTo } from '#shared/search/words/related.ts'
import { foldText } from '#shared/search/words/scripts.ts'
import { isMark, termsOf } from '#shared/search/words/words.ts'

/**
 * The embedder that needs nothing: no model, no network, no key. A text is the weighted sum of the
 * features of its terms; see local-features.ts. The same text has the same vector on every machine
 * and in every version that keeps the space's name: whoever changes what vectors come out, be it a
 * table, a weight or the terms of a text, must raise the number in `space`.
 */
export function localEmbedder(): Embedder {
  return {
    model: 'local',
    dimension,
    space: 'local_v1',
    calibration: { unrelated: 0.1, same: 0.75, floor: 0.35 },
    embedTexts: (texts, signal) => embedInTurns(texts, signal),
    embedQuery: text => Promise.resolve(embed(text)),
  }
}

/** About a millisecond's work: a large batch must not hold up the event loop. */
const textsATurn = 64

async function embedInTurns(
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = []
  for (let i = 0; i < texts.length; i += textsATurn) {
    signal?.throwIfAborted()
    if (i > 0) await new Promise(resolve => setImmediate(resolve))
    for (const text of texts.slice(i, i + textsATurn)) vectors.push(embed(text))
  }
  return vectors
}

/** A name in a text says who is there, not what it is about. */
const nameWeight = 0.4

/** The vector of a text, of unit length whatever the text. */
export function embed(text: string): Float32Array {
  const times = new Map<string, number>()
  for (const term of contentOf(text)) times.set(term, (times.get(term) ?? 0) + 1)
  const names = namesIn(text)

  const vector = new Float32Array(dimension)
  for (const [term, count] of times) {
    const { indices, values } = featureOf(term)
    const factor = (1 + Math.log(count)) * (names.has(term) ? nameWeight : 1)
    for (let i = 0; i < indices.length; i++) vector[indices[i]!]! += values[i]! * factor
  }
  return normalised(vector)
}

/** A text of stop words alone is told by them, one without words by its characters. */
function contentOf(text: string): string[] {
  const terms = termsOf(text).filter(term => !isMark(term))
  if (terms.length > 0) return terms
  const words = foldText(text).match(/[\p{L}\p{N}]+/gu)
  return words ?? Array.from(text).slice(0, 256)
}

const innerCapitals = /(?<=[\p{L}\d,;–-]\s)\p{Lu}[\p{L}'’]+/gu
/** Where more of the words are capitals they are titles, or German. */
const namesShareMax = 0.3

/**
 * The terms of words that have a capital though they begin no sentence, and that the tables do not
 * know: Caroline, but neither Japan nor Python.
 */
function namesIn(text: string): Set<string> {
  const capitals = text.match(innerCapitals)
  if (!capitals) return new Set()
  if (capitals.length > 1 && capitals.length > text.split(/\s+/).length * namesShareMax) {
    return new Set()
  }
  return new Set(capitals.flatMap(termsOf).filter(term => relatedTo(term).length === 0))
}

function normalised(vector: Float32Array): Float32Array {
  let sum = 0
  for (let i = 0; i < dimension; i++) sum += vector[i]! * vector[i]!
  if (sum === 0) {
    // An empty text is like no other.
    vector[0] = 1
    return vector
  }
  const factor = 1 / Math.sqrt(sum)
  for (let i = 0; i < dimension; i++) vector[i]! *= factor
  return vector
}
