import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Texts of one call; after a refusal each half is tried again. */
const batchMax = 64

/** After so many single texts refused and none embedded, the provider is at fault, not the texts. */
const refusedMax = 3

/**
 * The vector of each text, or the reason that it has none: one refused text does not fail the others.
 * When the provider does not answer, the rest is not tried.
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
