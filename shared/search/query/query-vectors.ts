import type { Embedder } from '#shared/domain/embedder.ts'
import { recallSeconds } from '#shared/core/metrics.ts'

export type QueryVectors = {
  /** The vector of a question; the same question to the same model is embedded once. */
  of(embedder: Embedder, text: string): Promise<Float32Array>
}

/** About 12 MB at 1,536 dimensions. */
const heldMax = 2_000
/** A question of this length is hardly asked twice. */
const charactersMax = 2_000

/** Vectors of recent questions, least recently asked out. Concurrent askers share one call. */
export function createQueryVectors(): QueryVectors {
  const held = new Map<string, Promise<Float32Array>>()

  return {
    of(embedder, text) {
      if (text.length > charactersMax) return embedded(embedder, text)
      const key = `${embedder.space}\n${text}`
      const vector = held.get(key) ?? embedded(embedder, text)
      held.delete(key)
      held.set(key, vector)
      vector.catch(() => held.delete(key))
      if (held.size > heldMax) held.delete(held.keys().next().value!)
      return vector
    },
  }
}

function embedded(embedder: Embedder, text: string): Promise<Float32Array> {
  const timed = recallSeconds.startTimer({ stage: 'embed' })
  return embedder.embedQuery(text).finally(timed)
}
