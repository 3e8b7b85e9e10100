import { mapInSlices, runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { dimension, getFeature } from '#shared/models/hashed-features.ts'
import { relatedTerms } from '#shared/search/words/related-terms.ts'
import { isFunctionTerm } from '#shared/search/words/stop-words.ts'
import { innerNames } from '#shared/search/query/named-subjects.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'
import { queryLengthMax } from '#shared/search/query/parse-query.ts'
import { isMarkerTerm, partTermsInSteps, termsOf } from '#shared/search/words/index-terms.ts'

/**
 * The built-in embedder: no model, no network, no key. A text is the weighted sum of the features of its terms
 * (hashed-features.ts). A change of the vectors, by a table, a weight or the terms of a text, must raise the number in
 * `space`: equal texts have equal vectors in one space.
 */
export function localEmbedder(): Embedder {
  return {
    model: 'local',
    dimension,
    space: 'local_v1',
    calibration: { unrelated: 0.1, same: 0.75, floor: 0.35 },
    embedEach: embedTexts,
    embedTexts,
    embedQuery: text => runInSlices(querySteps(text)),
    embedQueries: (texts, signal) => embedInSlices(texts, querySteps, signal),
  }
}

const embedTexts: Embedder['embedTexts'] = (texts, signal) =>
  embedInSlices(texts, textSteps, signal)

/** Thousands of texts, or long ones, must not block the event loop. */
const embedInSlices = (
  texts: readonly string[],
  stepsOf: (text: string) => Steps<Float32Array>,
  signal?: AbortSignal,
): Promise<Float32Array[]> =>
  mapInSlices(texts, text => {
    signal?.throwIfAborted()
    return runInSlices(stepsOf(text))
  })

/** Names of people show who is present in a text, not its subject. */
const nameWeight = 0.4

/** The vector of a text; always of unit length. */
export const embed = (text: string): Float32Array => runAtOnce(textSteps(text))

const textSteps = (text: string): Steps<Float32Array> => embedTerms(text, () => 1)

/** The weight of function words in a question: most texts of a language share them. */
const functionTermWeight = 0.3

/** As `textSteps`, with less weight of function words, for the part of a query that the ranking reads. */
const querySteps = (text: string): Steps<Float32Array> =>
  embedTerms(text.slice(0, queryLengthMax), term => (isFunctionTerm(term) ? functionTermWeight : 1))

function* embedTerms(text: string, weightOf: (term: string) => number): Steps<Float32Array> {
  const termCounts = new Map<string, number>()
  for (const term of yield* contentTerms(text))
    termCounts.set(term, (termCounts.get(term) ?? 0) + 1)
  const names = yield* properNames(text)

  const vector = new Float32Array(dimension)
  for (const [term, count] of termCounts) {
    const { indices, values } = getFeature(term)
    const factor = weightOf(term) * (1 + Math.log(count)) * (names.has(term) ? nameWeight : 1)
    for (let i = 0; i < indices.length; i++) vector[indices[i]!]! += values[i]! * factor
    yield
  }
  return normalizeInPlace(vector)
}

/** A text of stop words alone is embedded by them, one without words by its characters. */
function* contentTerms(text: string): Steps<string[]> {
  const terms = (yield* partTermsInSteps(text)).filter(term => !isMarkerTerm(term))
  if (terms.length > 0) return terms
  const words = foldText(text).match(/[\p{L}\p{N}]+/gu)
  return words ?? Array.from(text).slice(0, 256)
}

/** Terms that are capitalised inside a sentence and in no table: Caroline, but neither Japan nor Python. */
function* properNames(text: string): Steps<Set<string>> {
  const names = new Set<string>()
  for (const name of innerNames(text)) {
    for (const term of termsOf(name)) if (relatedTerms(term).length === 0) names.add(term)
    yield
  }
  return names
}

function normalizeInPlace(vector: Float32Array): Float32Array {
  let sum = 0
  for (let i = 0; i < dimension; i++) sum += vector[i]! * vector[i]!
  if (sum === 0) {
    // An empty text is similar to no other.
    vector[0] = 1
    return vector
  }
  const factor = 1 / Math.sqrt(sum)
  for (let i = 0; i < dimension; i++) vector[i]! *= factor
  return vector
}
