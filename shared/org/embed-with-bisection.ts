import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Texts of one call: what one bad text takes along is asked for again in halves. */
const batchMax = 64

/** So many texts refused one by one, and none embedded: it is the provider and not the texts. */
const refusedMax = 3

/**
 * The vector of each text, or why it has none: a text that the model refuses does not take others
 * along. When the provider is away it is not asked for each of them.
 */
export async function embedWithBisection(
  embedder: Pick<Embedder, 'embedTexts'>,
  texts: readonly string[],
): Promise<(Float32Array | Refusal)[]> {
  const outcomes: (Float32Array | Refusal)[] = []
  let refused = 0
  let embedded = 0

  const embed = async (start: number, end: number): Promise<void> => {
    try {
      const vectors = await embedder.embedTexts(texts.slice(start, end))
      outcomes.push(...vectors)
      embedded += vectors.length
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const isProviderDown = embedded === 0 && refused >= refusedMax
      if (end - start === 1 || isProviderDown) {
        outcomes.push(...texts.slice(start, end).map(() => error))
        refused += end - start
        return
      }
      const middle = (start + end) >> 1
      await embed(start, middle)
      await embed(middle, end)
    }
  }

  for (let start = 0; start < texts.length; start += batchMax) {
    await embed(start, Math.min(texts.length, start + batchMax))
  }
  return outcomes
}
