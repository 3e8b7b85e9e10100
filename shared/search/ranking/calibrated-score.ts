import type { Calibration } from '#shared/domain/embedder.ts'

/**
 * A cosine as clients read it: 0 where texts of this embedder have nothing to do with each other,
 * 1 where they say the same, straight in between. Monotone, so a threshold on scores is one on
 * cosines.
 */
export function scoreFromCosine(cosine: number, { unrelated, same }: Calibration): number {
  const score = (cosine - unrelated) / (same - unrelated)
  return score > 0 ? Math.min(1, score) : 0
}
