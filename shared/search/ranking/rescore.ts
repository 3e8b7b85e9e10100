import type { Calibration } from '#shared/domain/embedder.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import type { ScoredRow } from '#shared/search/ranking/score-candidates.ts'

/** Ranking uses approximate cosines; the score in the response is exact. */
export function rescore(
  chosen: readonly (ScoredRow & { vector: Float32Array | null })[],
  calibration: Calibration,
) {
  for (const [vector, ofQuestion] of Map.groupBy(chosen, row => row.vector)) {
    if (!vector) continue
    for (const [{ tierIndex }, rows] of Map.groupBy(ofQuestion, ({ range }) => range)) {
      const cosines = tierIndex.cosines(
        vector,
        rows.map(({ row }) => row),
      )
      rows.forEach(
        ({ signals }, i) => (signals.similarity = scoreFromCosine(cosines[i]!, calibration)),
      )
    }
  }
}
