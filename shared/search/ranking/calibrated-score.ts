import type { Calibration } from '#shared/domain/embedder.ts'

/**
 * The score of a cosine in responses: 0 for unrelated texts of this embedder, 1 for texts of equal
 * meaning, linear in between. Monotone, so a threshold on scores is one on cosines.
 */
export function scoreFromCosine(cosine: number, { unrelated, same }: Calibration): number {
  const score = (cosine - unrelated) / (same - unrelated)
  return score > 0 ? Math.min(1, score) : 0
}
