import { LRUCache } from 'lru-cache'
import type { Embedder } from '#shared/domain/embedder.ts'
import { recallSeconds } from '#shared/core/metrics.ts'

export type QueryVectorCache = {
  /** The vector of a query; an equal query to the same model is embedded once. */
  embed(embedder: Embedder, text: string): Promise<Float32Array>
}

/** About 12 MB at 1,536 dimensions. */
const entriesMax = 2_000
/** Longer queries hardly repeat. */
const cachedLengthMax = 2_000

/** An LRU cache of query vectors. Concurrent callers share one call of the embedder. */
export function createQueryVectorCache(): QueryVectorCache {
  const cache = new LRUCache<string, Promise<Float32Array>>({ max: entriesMax })

  return {
    embed(embedder, text) {
      if (text.length > cachedLengthMax) return embedTimed(embedder, text)
      const key = `${embedder.space}\n${text}`
      const known = cache.get(key)
      if (known) return known
      const vector = embedTimed(embedder, text)
      cache.set(key, vector)
      vector.catch(() => cache.delete(key))
      return vector
    },
  }
}

function embedTimed(embedder: Embedder, text: string): Promise<Float32Array> {
  const stopTimer = recallSeconds.startTimer({ stage: 'embed' })
  return embedder.embedQuery(text).finally(stopTimer)
}
