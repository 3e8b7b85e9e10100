import type { Embedder } from '#shared/domain/embedder.ts'

/**
 * The vectors that texts are stored with, in order. A text that the model has no vector for is stored all the
 * same, and found by its words: it gets the vector that the built-in embedder gives a text without features,
 * which is similar to no other.
 *
 * @throws Refusal `upstream` when the model does not answer.
 */
export async function embedToStore(
  { embedEach, dimension }: Pick<Embedder, 'embedEach' | 'dimension'>,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  if (texts.length === 0) return []
  const outcomes = await embedEach(texts, signal)
  return outcomes.map(outcome =>
    outcome instanceof Float32Array ? outcome : similarToNone(dimension),
  )
}

/** Of unit length: an index by cosine has no place for a vector of zeros. */
function similarToNone(dimension: number): Float32Array {
  const vector = new Float32Array(dimension)
  vector[0] = 1
  return vector
}
