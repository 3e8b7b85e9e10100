import type { Embedder } from '#shared/domain/embedder.ts'
import { recallSeconds } from '#shared/core/metrics.ts'

export type QueryVectorCache = {
  /** The vector of a question; the same question to the same model is embedded once. */
  embed(embedder: Embedder, text: string): Promise<Float32Array>
}

/** About 12 MB at 1,536 dimensions. */
const entriesMax = 2_000
/** A question of this length is hardly asked twice. */
const cachedLengthMax = 2_000

/** Vectors of recent questions, least recently asked out. Concurrent askers share one call. */
export function createQueryVectorCache(): QueryVectorCache {
  const cache = new Map<string, Promise<Float32Array>>()

  return {
    embed(embedder, text) {
      if (text.length > cachedLengthMax) return embedTimed(embedder, text)
      const key = `${embedder.space}\n${text}`
      const vector = cache.get(key) ?? embedTimed(embedder, text)
      cache.delete(key)
      cache.set(key, vector)
      vector.catch(() => cache.delete(key))
      if (cache.size > entriesMax) cache.delete(cache.keys().next().value!)
      return vector
    },
  }
}

function embedTimed(embedder: Embedder, text: string): Promise<Float32Array> {
  const stopTimer = recallSeconds.startTimer({ stage: 'embed' })
  return embedder.embedQuery(text).finally(stopTimer)
}
