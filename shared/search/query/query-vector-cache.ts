import { createLruCache } from '#shared/core/lru-cache.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { recallSeconds } from '#shared/core/metrics.ts'

/** About 12 MB at 1,536 dimensions. */
const entriesMax = 2_000
/** Characters beyond which queries hardly repeat; the turns before a question have fewer. */
const cachedLengthMax = 2_048

/** An LRU cache of query vectors. Concurrent callers share one call of the embedder. */
export class QueryVectorCache {
  readonly #cache = createLruCache<Promise<Float32Array>>(entriesMax)

  /** Returns the vector of a query; an equal query to the same model is embedded once. */
  async embed(embedder: Embedder, text: string): Promise<Float32Array> {
    return (await this.embedAll(embedder, [text]))[0]!
  }

  /** Returns the vectors of several queries, in order, with one call for those that are not cached. */
  embedAll(embedder: Embedder, texts: readonly string[]): Promise<Float32Array[]> {
    const cache = this.#cache
    const keyOf = (text: string): string => `${embedder.space}\n${text}`
    const known = texts.map(text => cache.get(keyOf(text)))
    const missing = texts.filter((_, i) => !known[i])
    if (missing.length === 0) return Promise.all(known.map(vector => vector!))
    const embedding = embedTimed(embedder, missing)
    const added = missing.map((text, i) => {
      const vector = embedding.then(vectors => vectors[i]!)
      const key = keyOf(text)
      if (text.length <= cachedLengthMax) cache.set(key, vector)
      vector.catch(() => cache.delete(key))
      return vector
    })
    return Promise.all(known.map(vector => vector ?? added.shift()!))
  }
}

function embedTimed(embedder: Embedder, texts: readonly string[]): Promise<Float32Array[]> {
  const stopTimer = recallSeconds.startTimer({ stage: 'embed' })
  return embedder.embedQueries(texts).finally(stopTimer)
}
